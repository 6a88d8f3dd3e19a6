# Three convolutions behind each other, as InvertedResidual and Bottleneck are.
EXTRA_DIST += \
	plugins/common/stages/reference.h \
	plugins/common/stages/run.h \
	plugins/common/stages/stages.h \
	plugins/common/stages/tail.cuh
