CORE_SOURCES = \
	core/alloc.c core/alloc.h \
	core/checked.h \
	core/status.c core/status.h
