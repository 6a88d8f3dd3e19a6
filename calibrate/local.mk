# Calibration, used by the command and its tests; libstrata itself quantises nothing.
CALIBRATE_SOURCES = \
	calibrate/answer.c \
	calibrate/collect.c \
	calibrate/collect.h \
	calibrate/collected.c \
	calibrate/collected.h \
	calibrate/histogram.c \
	calibrate/histogram.h \
	calibrate/loss.c \
	calibrate/loss.h \
	calibrate/method/entropy.c \
	calibrate/method/max.c \
	calibrate/method/method.c \
	calibrate/method/method.h \
	calibrate/method/mse.c \
	calibrate/method/percentile.c \
	calibrate/quantised.c \
	calibrate/quantised.h \
	calibrate/ranges.c \
	calibrate/ranges.h \
	calibrate/scheme.c \
	calibrate/scheme.h \
	calibrate/sensitivity.c \
	calibrate/sensitivity.h \
	calibrate/probe.c \
	calibrate/probe.h \
	calibrate/watch.c \
	calibrate/watch.h \
	calibrate/weights.c \
	calibrate/weights.h
noinst_LTLIBRARIES += libstrata-calibrate.la
libstrata_calibrate_la_SOURCES = $(CALIBRATE_SOURCES)
EXTRA_DIST += calibrate/README.md
