"""compile_child.py MODULE KERNEL CACHE: time the first launch of one kernel in this process and print it as JSON, with
``whole``: all since the import of the module began. A KERNEL that ends in "gradient" is also gone back through."""

import importlib
import json
import sys
import time

import numpy as np

module, which, cache = sys.argv[1:]
began = time.perf_counter()
wp = importlib.import_module(module)
if hasattr(wp.config, "log_level"):
    wp.config.log_level = 30
wp.config.quiet = True
wp.config.kernel_cache_dir = cache
wp.init()


@wp.kernel(enable_backward=False)
def one_line(x: wp.array(dtype=float)):
    x[wp.tid()] += 1.0


@wp.struct
class Drone:
    position: wp.vec3
    attitude: wp.quat
    velocity: wp.vec3
    spin: wp.vec3
    mass: float
    inertia: wp.mat33


@wp.func
def rotor_thrust(speed: float, inflow: float, height: float):
    """Thrust of one rotor, with loss by inflow and gain near the ground."""
    ratio = inflow / wp.max(wp.abs(speed) * 0.1, 1.0e-3)
    loss = wp.clamp(1.0 - ratio, 0.0, 1.5)
    ground = 1.0 + 0.02 / wp.max(height * height, 0.01)
    return 8.0e-6 * speed * speed * loss * ground


@wp.func
def contact(depth: float, velocity: wp.vec3, stiffness: float, damping: float, friction: float):
    """Force of the ground on a point: spring, damper, regularised friction."""
    force = wp.vec3(0.0, 0.0, 0.0)
    if depth > 0.0:
        normal = wp.max(stiffness * depth - damping * velocity[2], 0.0)
        slip = wp.vec3(velocity[0], velocity[1], 0.0)
        speed = wp.length(slip)
        force = wp.vec3(0.0, 0.0, normal) - slip * (friction * normal / (speed + 0.01))
    return force


@wp.func
def wind(p: wp.vec3, t: float):
    """A steady stream with three waves on it."""
    gust = wp.vec3(wp.sin(0.7 * p[0] + t), wp.cos(0.5 * p[1] - 0.3 * t), 0.2 * wp.sin(p[2] + 2.0 * t))
    return wp.vec3(3.0, 0.5, 0.0) * (1.0 - wp.exp(-0.5 * wp.max(p[2], 0.0))) + gust


@wp.kernel(enable_backward=which.endswith("gradient"))
def hundred_lines(
    position: wp.array(dtype=wp.vec3),
    attitude: wp.array(dtype=wp.quat),
    velocity: wp.array(dtype=wp.vec3),
    spin: wp.array(dtype=wp.vec3),
    rotors: wp.array(dtype=wp.vec4),
    goal: wp.array(dtype=wp.vec3),
    mass: wp.array(dtype=float),
    inertia: wp.array(dtype=wp.mat33),
    t: float,
    dt: float,
    energy: wp.array(dtype=float),
):
    i = wp.tid()
    d = Drone()
    d.position = position[i]
    d.attitude = wp.normalize(attitude[i])
    d.velocity = velocity[i]
    d.spin = spin[i]
    d.mass = mass[i]
    d.inertia = inertia[i]

    # frame of the body, inertia in the world
    rotation = wp.quat_to_matrix(d.attitude)
    world_inertia = rotation * d.inertia * wp.transpose(rotation)
    world_inverse = rotation * wp.inverse(d.inertia) * wp.transpose(rotation)
    up = wp.quat_rotate(d.attitude, wp.vec3(0.0, 0.0, 1.0))

    # controller: where thrust should point, how fast rotors should turn
    error = goal[i] - d.position
    reach = wp.length(error)
    if reach > 2.0:
        error = error * (2.0 / reach)
    wish = error * 4.0 - d.velocity * 3.0 + wp.vec3(0.0, 0.0, 9.81)
    axis = wp.normalize(wish)
    tilt = wp.cross(up, axis)
    angle = wp.acos(wp.clamp(wp.dot(up, axis), -1.0, 1.0))
    turn = tilt * (angle * 12.0) - d.spin * 1.5
    local_turn = wp.quat_rotate_inv(d.attitude, turn)
    base = wp.sqrt(wp.max(d.mass * wp.dot(wish, up), 0.0) / 3.2e-5)

    # four rotors on two arms
    force = wp.vec3(0.0, 0.0, -9.81) * d.mass
    torque = wp.vec3(0.0, 0.0, 0.0)
    speeds = rotors[i]
    for k in range(4):
        sx = float(1.0)
        sy = float(1.0)
        if k == 1 or k == 2:
            sx = -1.0
        if k >= 2:
            sy = -1.0
        arm = wp.quat_rotate(d.attitude, wp.vec3(0.15 * sx, 0.15 * sy, 0.02))
        command = base + 40.0 * (sy * local_turn[0] - sx * local_turn[1])
        speeds[k] = speeds[k] + (wp.clamp(command, 0.0, 900.0) - speeds[k]) * (dt * 25.0)
        at = d.position + arm
        air = d.velocity + wp.cross(d.spin, arm) - wind(at, t)
        thrust = up * rotor_thrust(speeds[k], wp.dot(air, up), at[2])
        drag = (air - up * wp.dot(air, up)) * (-2.0e-5 * speeds[k])
        force += thrust + drag
        torque += wp.cross(arm, thrust + drag) + up * (1.0e-7 * sx * sy * speeds[k] * speeds[k])

    # drag of the body, along each axis its own
    flow = wp.quat_rotate_inv(d.attitude, d.velocity - wind(d.position, t))
    areas = wp.vec3(0.02, 0.02, 0.05)
    squares = wp.vec3(flow[0] * wp.abs(flow[0]), flow[1] * wp.abs(flow[1]), flow[2] * wp.abs(flow[2]))
    pressure = wp.cw_mul(areas, squares)
    force -= wp.quat_rotate(d.attitude, pressure) * 0.6

    # corners of the frame against the ground
    for cx in range(2):
        for cy in range(2):
            for cz in range(2):
                corner = wp.vec3(0.2 * float(cx) - 0.1, 0.2 * float(cy) - 0.1, 0.06 * float(cz) - 0.03)
                arm = wp.quat_rotate(d.attitude, corner)
                moving = d.velocity + wp.cross(d.spin, arm)
                push = contact(0.0 - d.position[2] - arm[2], moving, 800.0, 4.0, 0.6)
                force += push
                torque += wp.cross(arm, push)

    # semi-implicit step with the gyroscopic term
    spin_rate = world_inverse * (torque - wp.cross(d.spin, world_inertia * d.spin))
    w = d.spin + spin_rate * dt
    v = d.velocity + force * (dt / d.mass)
    x = d.position + v * dt
    change = wp.quat(w[0], w[1], w[2], 0.0) * d.attitude
    q = wp.normalize(d.attitude + change * (0.5 * dt))

    # limits of the model
    fastest = wp.length(v)
    if fastest > 40.0:
        v = v * (40.0 / fastest)
    if wp.length(w) > 60.0:
        w = wp.normalize(w) * 60.0

    # energy of this drone, in all of its forms
    linear = 0.5 * d.mass * wp.dot(v, v)
    rotary = 0.5 * wp.dot(w, world_inertia * w)
    height = d.mass * 9.81 * x[2]
    shape = wp.outer(v, w) + wp.identity(n=3, dtype=float)
    trim = 1.0e-6 * (wp.trace(shape) + wp.determinant(shape))
    position[i] = x
    attitude[i] = q
    velocity[i] = v
    spin[i] = w
    rotors[i] = speeds
    wp.atomic_add(energy, 0, linear + rotary + height + trim)


def inputs_of_hundred_lines(n: int) -> list:
    rng = np.random.default_rng(0)

    def vectors() -> object:
        return wp.array(rng.normal(size=(n, 3)).astype(np.float32), dtype=wp.vec3, device="cpu")

    turned = rng.normal(size=(n, 4)).astype(np.float32)
    turned /= np.linalg.norm(turned, axis=1, keepdims=True)
    inertia = np.tile(np.diag([0.01, 0.012, 0.02]).astype(np.float32), (n, 1, 1))
    return [
        vectors(),
        wp.array(turned, dtype=wp.quat, device="cpu"),
        vectors(),
        vectors(),
        wp.full(n, wp.vec4(500.0), dtype=wp.vec4, device="cpu"),
        vectors(),
        wp.full(n, 1.2, dtype=float, device="cpu"),
        wp.array(inertia, dtype=wp.mat33, device="cpu"),
        0.0,
        1.0e-3,
        wp.zeros(1, dtype=float, device="cpu"),
    ]


N = 16
ENERGY = 290.3138  # of the 16 drones after one step, as NVIDIA Warp 1.19 computes it
if which == "one_line":
    kernel, inputs = one_line, [wp.zeros(N, dtype=float, device="cpu")]
else:
    kernel, inputs = hundred_lines, inputs_of_hundred_lines(N)
if which.endswith("gradient"):
    for each in inputs:
        if isinstance(each, wp.array):
            each.requires_grad = True
    start = time.perf_counter()
    tape = wp.Tape()
    with tape:
        wp.launch(kernel, dim=N, inputs=inputs, device="cpu")
    tape.backward(inputs[-1])
else:
    start = time.perf_counter()
    wp.launch(kernel, dim=N, inputs=inputs, device="cpu")
end = time.perf_counter()
first, whole = end - start, end - began
result = inputs[-1].numpy()
right = bool((result == 1.0).all() if which == "one_line" else abs(result[0] - ENERGY) < 1e-3 * abs(ENERGY))
print(json.dumps({"first": first, "whole": whole, "right": right, "result": float(result[0])}))
