REGISTRY_SOURCES = \
	registry/admit.c \
	registry/attribute.c \
	registry/descriptor.c \
	registry/descriptor.h \
	registry/elf/contents.c \
	registry/elf/elf.c \
	registry/elf/elf.h \
	registry/elf/image.c \
	registry/elf/image.h \
	registry/given.c \
	registry/host.c \
	registry/host.h \
	registry/implementation.c \
	registry/loading/guard.c \
	registry/loading/guard.h \
	registry/loading/mapped.c \
	registry/loading/mapped.h \
	registry/lookup.c \
	registry/math/mode.c \
	registry/math/mode.h \
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
	registry/search.c \
	registry/trial/known.c \
	registry/trial/known.h \
	registry/trial/trial.c \
	registry/trial/trial.h

# Run by the library, not by people.
pkglibexec_PROGRAMS += strata-trial
strata_trial_SOURCES = registry/trial/main.c
strata_trial_LDADD = libstrata-internal.la
EXTRA_DIST += registry/README.md
