"""XLA's C structures are read from its header, whatever order its fields have there."""

from treadle.interop.xla import Level, merged, parse_header

HEADER = """
// a comment; with struct X { int no; };
#define XLA_FFI_API_MAJOR 0
#define XLA_FFI_API_MINOR 7
typedef enum { XLA_FFI_First = 3, /* between */ XLA_FFI_Second = 9 } XLA_FFI_Kind;
struct XLA_FFI_Version { size_t struct_size; int major_version;  // out
  int minor_version; };
typedef struct XLA_FFI_Span { const char* ptr; size_t len; } XLA_FFI_Span;
struct XLA_FFI_Frame {
  size_t struct_size;
  XLA_FFI_Kind kind;
  struct XLA_FFI_Version version;
  void (*deleter)(void* object);
  XLA_FFI_Span** names;
  _XLA_FFI_API_STRUCT_FIELD(XLA_FFI_Error_Create);
  int64_t rank;
};
"""


def test_offsets_follow_the_rules_of_c():
    found = parse_header(HEADER)
    assert (found["XLA_FFI_API_MINOR"], found["XLA_FFI_Second"]) == (7, 9)
    fields = {name.partition(".")[2]: at for name, at in found.items() if name.startswith("XLA_FFI_Frame.")}
    assert fields == {"struct_size": 0, "kind": 8, "version": 16, "deleter": 32, "names": 40,
                      "XLA_FFI_Error_Create": 48, "rank": 56}  # fmt: skip
    assert (found["XLA_FFI_Frame"], found["XLA_FFI_Version.minor_version"], found["XLA_FFI_Span"]) == (64, 12, 16)


def test_axes_of_the_same_operands_are_one():
    axes = [Level(2, (True, False)), Level(3, (True, False)), Level(5, (True, True))]
    assert merged(axes) == (Level(6, (True, False)), Level(5, (True, True)))
