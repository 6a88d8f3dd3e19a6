CORE_SOURCES = \
	core/alloc.c \
	core/alloc.h \
	core/checked.h \
	core/device.h \
	core/device_module.c \
	core/handle.c \
	core/handle.h \
	core/host_device.c \
	core/host_device.h \
	core/host_event.c \
	core/installed.c \
	core/installed.h \
	core/names.c \
	core/names.h \
	core/progress.c \
	core/progress.h \
	core/status.c \
	core/status.h \
	core/team.h \
	core/tensor.c \
	core/text.c \
	core/text.h \
	core/trust.c \
	core/trust.h
EXTRA_DIST += core/README.md
