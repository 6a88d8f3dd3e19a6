REGISTRY_SOURCES = \
	registry/admit.c \
	registry/attribute.c \
	registry/descriptor.c \
	registry/descriptor.h \
	registry/guard.c \
	registry/guard.h \
	registry/host.c \
	registry/host.h \
	registry/implementation.c \
	registry/lookup.c \
	registry/module.c \
	registry/module.h \
	registry/name.c \
	registry/name.h \
	registry/note.c \
	registry/note.h \
	registry/private.h \
	registry/probe.c \
	registry/probe.h \
	registry/registry.c \
	registry/registry.h \
	registry/search.c
EXTRA_DIST += registry/README.md
