"""Sensors: everything that needs only state and contacts."""

from treadle.mujoco.sensor.stage import rne_postconstraint, sensor_acc, sensor_pos, sensor_vel

__all__ = ["rne_postconstraint", "sensor_acc", "sensor_pos", "sensor_vel"]
