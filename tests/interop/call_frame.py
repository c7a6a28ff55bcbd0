"""What XLA gives a handler of its foreign function interface, made by hand: the frame of a call on a GPU, with the
functions by which a handler asks for the stream and for the GPU's number, and by which it reports."""

import ctypes

from treadle.interop.xla import layout

INITIALIZE, EXECUTE = 2, 3
_handed = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class Frame:
    """A call with buffers at the addresses ``operands`` and ``results``, on a stream of a GPU."""

    def __init__(self, operands=(), results=(), stream=0, number=0):
        self.at, self.errors, self._kept = layout(), [], []
        self._frame = self._record("XLA_FFI_CallFrame")
        api, context = self._record("XLA_FFI_Api"), self._record("XLA_FFI_ExecutionContext_Get_Args")
        for name, answer in (
            ("Stream_Get", lambda args: self._answer(args, "Stream_Get", "stream", 8, stream)),
            ("DeviceOrdinal_Get", lambda args: self._answer(args, "DeviceOrdinal_Get", "device_ordinal", 4, number)),
            ("Error_Create", self._error),
        ):
            function = _handed(answer)
            self._kept.append(function)
            self._set(api, f"XLA_FFI_Api.XLA_FFI_{name}", ctypes.cast(function, ctypes.c_void_p).value)
        self._context = context
        self._set(self._frame, "XLA_FFI_CallFrame.api", api)
        self._set(self._frame, "XLA_FFI_CallFrame.ctx", context)
        for part, kind, addresses in (("args", "Args", operands), ("rets", "Rets", results)):
            buffers = [self._buffer(address) for address in addresses]
            table = (ctypes.c_uint64 * max(len(buffers), 1))(*buffers)
            self._kept.append(table)
            at = self._frame + self.at[f"XLA_FFI_CallFrame.{part}"]
            self._set(at, f"XLA_FFI_{kind}.{part}", ctypes.addressof(table))

    def _record(self, name):
        memory = ctypes.create_string_buffer(self.at[name])
        self._kept.append(memory)
        return ctypes.addressof(memory)

    def _set(self, at, field, value, size=8):
        ctypes.memmove(at + self.at[field], value.to_bytes(size, "little"), size)

    def _buffer(self, address):
        made = self._record("XLA_FFI_Buffer")
        self._set(made, "XLA_FFI_Buffer.data", address)
        return made

    def _answer(self, args, name, field, size, value):
        asked = ctypes.c_uint64.from_address(args + self.at[f"XLA_FFI_{name}_Args.ctx"]).value
        assert asked == self._context
        assert ctypes.c_uint64.from_address(args).value >= self.at[f"XLA_FFI_{name}_Args.{field}"] + size
        self._set(args, f"XLA_FFI_{name}_Args.{field}", value, size)

    def _error(self, args):
        text = ctypes.c_uint64.from_address(args + self.at["XLA_FFI_Error_Create_Args.message"]).value
        self.errors.append(ctypes.string_at(text).decode())
        return 1

    def call(self, target, *stages):
        """Let a target's handler have the frame, at each of the stages; what it reported."""
        del self.errors[:]
        handler = _handed(target.library.addresses["treadle_ffi"])
        for stage in stages or (INITIALIZE, EXECUTE):
            self._set(self._frame, "XLA_FFI_CallFrame.stage", stage, 4)
            assert bool(handler(self._frame)) == bool(self.errors)
        return self.errors

    def traits(self, target):
        """What the handler says of itself."""
        extension, facts = self._record("XLA_FFI_Metadata_Extension"), self._record("XLA_FFI_Metadata")
        self._set(extension, "XLA_FFI_Extension_Base.type", self.at["XLA_FFI_Extension_Metadata"], 4)
        self._set(extension, "XLA_FFI_Metadata_Extension.metadata", facts)
        self._set(self._frame, "XLA_FFI_CallFrame.extension_start", extension)
        assert not _handed(target.library.addresses["treadle_ffi"])(self._frame)
        self._set(self._frame, "XLA_FFI_CallFrame.extension_start", 0)
        version = facts + self.at["XLA_FFI_Metadata.api_version"] + self.at["XLA_FFI_Api_Version.minor_version"]
        assert ctypes.c_int32.from_address(version).value == self.at["XLA_FFI_API_MINOR"]
        return ctypes.c_uint32.from_address(facts + self.at["XLA_FFI_Metadata.traits"]).value
