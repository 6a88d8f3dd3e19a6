# Examples.
EXTRA_DIST += examples/digits/README.md examples/digits/digits.ini \
	examples/digits/digits.safetensors examples/digits/digits-test-images.idx \
	examples/digits/digits-test-labels.idx examples/digits/images \
	examples/digits/requirements.txt examples/digits/train.py

# Networks that others trained; their weights come from elsewhere.
EXTRA_DIST += examples/models/README.md examples/models/mnist_cntk.ini \
	examples/models/resnet20_cifar10.ini examples/models/squeezenet_v1.1.ini \
	examples/models/yolo-fastest-1.1.ini scripts/convert_models.py

# The demo uses the installed interface alone: public headers and libstrata.
noinst_PROGRAMS += examples/digits/demo
examples_digits_demo_SOURCES = examples/digits/demo.c
examples_digits_demo_LDADD = libstrata.la

.PHONY: demo
demo: all
	STRATA_PLUGIN_DIR='$(abs_builddir)/plugins/.libs' \
		examples/digits/demo '$(srcdir)/examples/digits'
