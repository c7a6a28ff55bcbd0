"""``warp._src.thirdparty``: of the libraries that Warp carries along, the folders of users."""
