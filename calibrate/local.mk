# Calibration, used by the command and its tests; libstrata itself quantises nothing.
CALIBRATE_SOURCES = \
	calibrate/histogram.c \
	calibrate/histogram.h \
	calibrate/method/entropy.c \
	calibrate/method/max.c \
	calibrate/method/method.c \
	calibrate/method/method.h \
	calibrate/method/mse.c \
	calibrate/method/percentile.c \
	calibrate/ranges.c \
	calibrate/ranges.h
noinst_LTLIBRARIES += libstrata-calibrate.la
libstrata_calibrate_la_SOURCES = $(CALIBRATE_SOURCES)
EXTRA_DIST += calibrate/README.md
