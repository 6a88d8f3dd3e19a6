# One module per layer. A plugin links nothing of ours; -z defs proves it.
LDFLAGS_FOR_PLUGINS = $(AM_LDFLAGS) -module -avoid-version -shared -no-undefined
if !SANITIZED
LDFLAGS_FOR_PLUGINS += -Wl,-z,defs
endif
CFLAGS_FOR_PLUGINS = $(AM_CFLAGS) -O3
