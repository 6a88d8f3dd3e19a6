# Faster host impls, where oneDNN is found: one module; a layer's part of it is its folder's
# onednn.c.
ONEDNN_SOURCES += \
	plugins/common/onednn/describe.c \
	plugins/common/onednn/epilogue.c \
	plugins/common/onednn/epilogue.h \
	plugins/common/onednn/module.c \
	plugins/common/onednn/primitive.c \
	plugins/common/onednn/quantized.c \
	plugins/common/onednn/primitive.h \
	plugins/common/onednn/state.c \
	plugins/common/onednn/window.h
if HAVE_DNNL
plugin_LTLIBRARIES += plugins/onednn.la
plugins_onednn_la_SOURCES = $(ONEDNN_SOURCES)
plugins_onednn_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_onednn_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_onednn_la_LIBADD = $(DNNL_LIBS) $(M_LIBS)
endif
