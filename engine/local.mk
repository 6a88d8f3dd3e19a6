ENGINE_SOURCES = \
	engine/batch.c \
	engine/batcher/batcher.c \
	engine/batcher/batcher.h \
	engine/batcher/queue.c \
	engine/batcher/request.c \
	engine/batcher/run.c \
	engine/batcher/worker.c \
	engine/context/batch.c \
	engine/context/bind.c \
	engine/context/check.c \
	engine/context/check.h \
	engine/context/check_tensor.c \
	engine/context/context.c \
	engine/context/context.h \
	engine/context/enter.c \
	engine/context/graph.c \
	engine/context/guard.c \
	engine/context/profile.c \
	engine/context/run.c \
	engine/context/settle.c \
	engine/context/steps.c \
	engine/engine.c \
	engine/engine.h \
	engine/file/load.c \
	engine/file/plugins.c \
	engine/file/save.c \
	engine/file/stored.c \
	engine/file/stored.h \
	engine/file/weights.c \
	engine/image.c \
	engine/setup.c \
	engine/share.c \
	engine/staging.c \
	engine/staging.h \
	engine/step.c \
	engine/weights.c
EXTRA_DIST += engine/README.md
