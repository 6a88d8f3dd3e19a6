CORE_SOURCES = \
	core/alloc.c \
	core/alloc.h \
	core/arguments.h \
	core/checked.h \
	core/device.h \
	core/device_module.c \
	core/handle.c \
	core/handle.h \
	core/host/crew.c \
	core/host/crew.h \
	core/host/device.c \
	core/host/device.h \
	core/host/event.c \
	core/host/stream.c \
	core/host/wait.c \
	core/host/wait.h \
	core/installed.c \
	core/installed.h \
	core/status.c \
	core/status.h \
	core/team.h \
	core/tensor.c \
	core/text.c \
	core/text.h \
	core/trust.c \
	core/trust.h
EXTRA_DIST += core/README.md
