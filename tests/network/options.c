/* SPDX-License-Identifier: Apache-2.0
 *
 * Around the graph of a network: inputs, options of the file and of the call, plugins,
 * paths.
 */
#include "tests/network/network_text.h"

TestSuite(network_options, .init = network_start, .fini = network_stop, .timeout = 600);

Test(network_options, inputs_have_shapes_formats_and_transforms)
{
    strata_network *net =
        load("[profile]\nN = 2\n[network]\nformat = 1\noutputs = out\n"
             "[input image]\nshape = N x 3 x 8 x 9\nformat = u8:nhwc\nchannels = bgr\n"
             "resize = letterbox\nantialias = yes\nfill = 114\nscale = 0.00392156\n"
             "mean = 0.5, 0.25, 0\n"
             "std = 2\n[input mask]\nshape = 2 x 1 x 8 x 9\n"
             "[input ids]\nshape = 5\ndtype = i32\n"
             "[layer out]\ntype = Join\ninputs = image, mask\n");
    const struct network_input *image = network_find_input(net, "image");
    cr_assert_not_null(image);
    cr_expect_null(network_find_input(net, "out"));
    cr_expect_eq(image->format.dtype, STRATA_UINT8);
    cr_expect_eq(image->format.order, ORDER_LAST);
    cr_expect_eq(tensor(net, "image")->dtype, STRATA_FP32);
    expect_dims(net, "image", 4, (int64_t[]){2, 3, 8, 9});
    const struct image_transform *t = &image->transform;
    cr_expect(t->channels == IMAGE_BGR && t->resize == IMAGE_LETTERBOX && t->fill == 114);
    cr_expect(t->antialias && !network_find_input(net, "mask")->transform.antialias);
    cr_expect(t->scale == 0.00392156 && t->mean[1] == 0.25 && t->mean[2] == 0);
    cr_expect(t->std[0] == 2 && t->std[2] == 2);
    const struct network_input *mask = network_find_input(net, "mask");
    cr_expect(mask->transform.channels == IMAGE_GRAY && mask->transform.scale == 1 &&
              mask->transform.mean[0] == 0 && mask->transform.std[0] == 1);
    cr_expect_eq(network_find_input(net, "ids")->format.dtype, STRATA_INT32);
    cr_expect_eq(tensor(net, "ids")->dtype, STRATA_INT32);
    expect_dims(net, "out", 4, (int64_t[]){2, 4, 8, 9});
    strata_network_destroy(net);
}

Test(network_options, options_of_the_file_are_kept)
{
    spill("classes.txt", "cat\ndog\r\n\nlast", 14);
    strata_network *net = load(
        HEAD "[layer out]\ntype = Pass\n"
             "[build]\nprecision = fp16\nformats = fp16:nhwc8, fp16:nchw\nfusion = no\n"
             "no_reformat = yes\ndeterministic = on\nworkspace = 64MiB\n"
             "math = tensor_op\n"
             "[runtime]\ndevice = cuda:1\nthreads = 2\nwait = sleep\ngraph = no\n"
             "[bench]\nwarmup = 10ms\nduration = 1.5s\niterations = 7\n");
    cr_expect_str_eq(net->name, "net");
    cr_expect_eq(net->build.precision, PRECISION_FP16);
    cr_expect_eq(net->build.formats, STRATA_F16_NHWC8 | STRATA_F16_NCHW);
    cr_expect(!net->build.fusion && net->build.no_reformat && net->build.deterministic);
    cr_expect_eq(net->build.workspace, 64u << 20);
    cr_expect_str_eq(net->runtime.device, "cuda:1");
    cr_expect_eq(net->build.math, STRATA_MATH_TENSOR_OP);
    cr_expect_eq(net->runtime.threads, 2);
    cr_expect_eq(net->runtime.wait, STRATA_WAIT_SLEEP);
    cr_expect_not(net->runtime.graph);
    cr_expect(net->bench.warmup == 10000000 && net->bench.duration == 1500000000 &&
              net->bench.iterations == 7);
    strata_network_destroy(net);
    net = load("[network]\nformat = 1\noutputs = out\nname = \"A net\"\n"
               "labels = classes.txt\n[input x]\nshape = 1\n[layer out]\ntype = Pass\n");
    cr_expect_str_eq(net->name, "A net");
    cr_assert_eq(net->n_labels, 4);
    cr_expect_str_eq(net->labels[1], "dog");
    cr_expect_str_eq(net->labels[2], "");
    cr_expect_str_eq(net->labels[3], "last");
    cr_expect(net->build.fusion && !net->build.no_reformat && net->build.formats == 0);
    cr_expect_str_eq(net->runtime.device, "auto");
    cr_expect_eq(net->runtime.wait, STRATA_WAIT_YIELD);
    strata_network_destroy(net);
}

Test(network_options, options_of_the_call_reach_every_step)
{
    static const char *const set[] = {"layer s.parts=2", "input x.shape=${n} x 8",
                                      "build.precision=any"};
    static const char *const bad[] = {"layer s.parts=x"};
    static const char *const define[] = {"n=5"};
    strata_network_options options = {.struct_size = sizeof options,
                                      .set = set,
                                      .n_set = 3,
                                      .define = define,
                                      .n_define = 1};
    const char *text = "[network]\nformat = 1\noutputs = s:1\n[input x]\nshape = 1 x 6\n"
                       "[layer s]\ntype = Split\nparts = 3\n";
    strata_network *net = load_with(text, &options);
    expect_dims(net, "s:1", 2, (int64_t[]){5, 4});
    cr_expect_eq(net->build.precision, PRECISION_ANY);
    strata_network_destroy(net);
    strata_error err = {0};
    options =
        (strata_network_options){.struct_size = sizeof options, .set = bad, .n_set = 1};
    const char *path = spill("net.ini", text, strlen(text));
    cr_expect_eq(strata_network_load(&net, path, registry, &options, &err),
                 STRATA_EPARSE);
    cr_expect_not_null(strstr(err.message, "--set layer s.parts=x: error: 'x' is not an "
                                           "integer\n    layer s.parts=x\n"
                                           "                  ^\n"
                                           "    parts: number of outputs (0 to 100000)"),
                       "%s", err.message);
}

Test(network_options, sizes_of_names_that_no_dim_has_are_told)
{
    static const struct {
        const char *head, *set, *says;
    } cases[] = {
        {"[profile]\nlength = 2\n", "profile.lenght=3",
         "no dim of the network has the name 'lenght'; did you mean 'length'?\n"
         "    profile.lenght=3"},
        {"[profile]\nlength = 1..4\nother = 1\n", "profile.other=3",
         "no dim of the network has the name 'other'\n"},
        {"[vars]\nlength = 2\n", "profile.length=3",
         "none has a name, so an input's is another by --set 'input NAME.shape=...'"},
        {"[profile]\nlength = 2\nother = 1\n", "profile.length=3", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bool names = strncmp(cases[i].head, "[profile]", 9) == 0;
        char *text;
        cr_assert_geq(asprintf(&text,
                               "%s[network]\nformat = 1\noutputs = y\n[input x]\n"
                               "shape = 1 x %s\n[layer y]\ntype = Pass\n",
                               cases[i].head, names ? "length" : "${length}"),
                      0);
        strata_network_options options = {
            .struct_size = sizeof options, .set = &cases[i].set, .n_set = 1};
        strata_network *net = NULL;
        strata_error err = {0};
        const char *path = spill("net.ini", text, strlen(text));
        const int status = strata_network_load(&net, path, registry, &options, &err);
        cr_expect_eq(status, cases[i].says ? STRATA_EPARSE : STRATA_OK);
        cr_expect(!cases[i].says || strstr(err.message, cases[i].says), "%zu: %s", i,
                  err.message);
        strata_network_destroy(net);
        free(text);
    }
}

Test(network_options, plugins_come_from_the_file_s_folder)
{
    strata_registry *empty;
    strata_registry_options options = {.struct_size = sizeof options,
                                       .no_default_path = 1};
    static const char *const keys[] = {"", "[plugins]\nload = layers.so\n",
                                       "[plugins]\npath = more\n"};
    char text[512];
    cr_assert_eq(mkdir(in_scratch("more"), 0755), 0);
    build("more/layers.so", "modules/test_layers.c", SHARED);
    for (int i = 0; i < 3; i++) {
        strata_error err = {0};
        strata_network *net;
        cr_assert_eq(strata_registry_create(&empty, &options, &err), STRATA_OK);
        snprintf(text, sizeof text, "%s%s[layer out]\ntype = Pass\n", keys[i], HEAD);
        const char *path = spill("net.ini", text, strlen(text));
        int status = strata_network_load(&net, path, empty, NULL, &err);
        cr_expect_eq(status, i ? STRATA_OK : STRATA_EPARSE, "%s: %s", keys[i],
                     err.message);
        strata_network_destroy(net);
        strata_registry_destroy(empty);
    }
}

Test(network_options, relative_paths_are_understood)
{
    strata_network *net;
    strata_error err = {0};
    char here[512];
    cr_assert_not_null(getcwd(here, sizeof here));
    spill_weights();
    cr_assert_eq(mkdir(in_scratch("more"), 0755), 0);
    build("more/layers.so", "modules/test_layers.c", SHARED);
    const char text[] = "[plugins]\npath = more\n" HEAD FILE_WEIGHTS
                        "[layer out]\ntype = Affine\nunits = 4\nweights = w:fc\n";
    spill("net.ini", text, strlen(text));
    cr_assert_eq(chdir(scratch), 0);
    cr_expect_eq(strata_network_load(&net, "net.ini", registry, NULL, &err), STRATA_OK,
                 "%s", err.message);
    cr_assert_eq(chdir(here), 0);
    strata_network_destroy(net);
}

Test(network_options, wrong_arguments_are_refused)
{
    strata_network *net;
    strata_error err = {0};
    strata_network_options options = {.struct_size = 1};
    cr_expect_eq(strata_network_load(NULL, "a", registry, NULL, &err), STRATA_EINVAL);
    cr_expect_eq(strata_network_load(&net, NULL, registry, NULL, &err), STRATA_EINVAL);
    cr_expect_eq(strata_network_load(&net, "a", NULL, NULL, &err), STRATA_EINVAL);
    cr_expect_eq(strata_network_load(&net, "a", registry, &options, &err), STRATA_EINVAL);
    cr_expect_eq(strata_network_load(&net, in_scratch("none.ini"), registry, NULL, &err),
                 STRATA_ENOTFOUND);
    cr_expect_eq(strata_network_load(&net, in_scratch("none.ini"), registry, NULL, NULL),
                 STRATA_ENOTFOUND);
    strata_network_destroy(NULL);
}
