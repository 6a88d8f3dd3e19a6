/* SPDX-License-Identifier: Apache-2.0
 *
 * Images and labels by the API: what `strata run` does, from files and from pixels, by
 * engines that were built and that were loaded.
 */
#include "tests/engine/engine_session.h"

#include <math.h>

TestSuite(image, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

#define OK(call) cr_assert_eq((call), STRATA_OK, "%s", s.err.message)
#define REFUSED(status, word, call)                                                      \
    do {                                                                                 \
        cr_expect_eq((call), (status), "%s", s.err.message);                             \
        cr_expect_not_null(strstr(s.err.message, (word)), "%s", s.err.message);          \
    } while (0)

static const char net[] = "[network]\nformat = 1\noutputs = y\nlabels = names.txt\n"
                          "[input x]\nshape = 2 x 3 x 2 x 2\nformat = %s\n"
                          "channels = bgr\nresize = exact\nscale = 0.5\nmean = 1, 2, 3\n"
                          "std = 2, 4, 8\n"
                          "[input g]\nshape = 2 x 1 x 2 x 2\n"
                          "[input v]\nshape = 2 x 4\n"
                          "[layer y]\ntype = Activation\ninputs = x\nkind = relu\n"
                          "[layer z]\ntype = Activation\ninputs = g\nkind = relu\n"
                          "[layer w]\ntype = Activation\ninputs = v\nkind = relu\n";

static const uint8_t pixels[2][2][3] = {{{10, 20, 30}, {40, 50, 60}},
                                        {{70, 80, 90}, {100, 110, 120}}};

static void open_net(struct session *s, const char *format)
{
    char text[1024], set[] = "network.outputs=y,z,w";
    const char *sets[] = {set};
    snprintf(text, sizeof text, net, format);
    spill_text("names.txt", "cat\ndog\n");
    cr_assert_eq(session_build(s, spill_text("net.ini", text), sets, 1), STRATA_OK, "%s",
                 s->err.message);
}

/* Of channel c at a pixel, as the section says: blue first. */
static float expected(int c, int y, int x)
{
    static const float mean[] = {1, 2, 3}, deviation[] = {2, 4, 8};
    return (0.5f * (float)pixels[y][x][2 - c] - mean[c]) / deviation[c];
}

static strata_image whole(void)
{
    return (strata_image){.struct_size = sizeof(strata_image),
                          .pixels = &pixels[0][0][0],
                          .width = 2,
                          .height = 2,
                          .channels = 3};
}

static void expect_planes(const float *row)
{
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 4; i++)
            cr_expect(fabsf(row[c * 4 + i] - expected(c, i / 2, i % 2)) < 1e-6f,
                      "channel %d, pixel %d: %g", c, i, (double)row[c * 4 + i]);
}

Test(image, pixels_become_a_row_as_the_section_says)
{
    struct session s;
    strata_image im = whole();
    float row[12];
    open_net(&s, "fp32:nchw");
    OK(strata_engine_convert_image(s.engine, 0, row, &im, &s.err));
    expect_planes(row);
    release(&s);
}

Test(image, rows_of_pixels_may_lie_apart)
{
    struct session s;
    strata_image im = whole();
    uint8_t wide[2][11];
    float row[12];
    memset(wide, 0xee, sizeof wide);
    for (int y = 0; y < 2; y++)
        memcpy(wide[y], pixels[y], 6);
    im.pixels = wide[0];
    im.stride = sizeof wide[0];
    open_net(&s, "fp32:nchw");
    OK(strata_engine_convert_image(s.engine, 0, row, &im, &s.err));
    expect_planes(row);
    release(&s);
}

Test(image, a_file_gives_what_its_pixels_give)
{
    struct session s;
    float row[12];
    open_net(&s, "fp32:nchw");
    const char *path = spill_text("a.ppm", "P3 2 2 255 10 20 30 40 50 60 "
                                           "70 80 90 100 110 120\n");
    OK(strata_engine_read_image(s.engine, 0, row, path, &s.err));
    expect_planes(row);
    release(&s);
}

/* Half floats in vectors of 8 channels, of which 5 are pad lanes. */
Test(image, rows_are_in_the_format_of_the_binding)
{
    struct session s;
    strata_image im = whole();
    uint16_t row[4][8];
    memset(row, 0x7e, sizeof row); /* NaN */
    open_net(&s, "fp16:nhwc8");
    OK(strata_engine_convert_image(s.engine, 0, row, &im, &s.err));
    for (int i = 0; i < 4; i++)
        for (int c = 0; c < 8; c++)
            cr_expect_eq(row[i][c],
                         c < 3 ? half_from_float(expected(c, i / 2, i % 2)) : 0);
    release(&s);
}

/* Resized: a grey image of one pixel fills the other input. */
Test(image, grey_ones_are_stretched)
{
    struct session s;
    const uint8_t grey = 77;
    strata_image im = {.struct_size = sizeof im,
                       .pixels = &grey,
                       .width = 1,
                       .height = 1,
                       .channels = 1};
    float row[4];
    open_net(&s, "fp32:nchw");
    OK(strata_engine_convert_image(s.engine, 1, row, &im, &s.err));
    for (int i = 0; i < 4; i++)
        cr_expect_eq(row[i], 77);
    release(&s);
}

Test(image, what_is_no_image_is_refused)
{
    struct session s;
    strata_image im = whole();
    float row[12];
    open_net(&s, "fp32:nchw");
    REFUSED(STRATA_EINVAL, "input 3: there are 3",
            strata_engine_convert_image(s.engine, 3, row, &im, &s.err));
    REFUSED(STRATA_EINVAL, "'v' is not",
            strata_engine_convert_image(s.engine, 2, row, &im, &s.err));
    im.channels = 4;
    REFUSED(STRATA_EINVAL, "4 channels",
            strata_engine_convert_image(s.engine, 0, row, &im, &s.err));
    im = whole();
    im.width = 0;
    REFUSED(STRATA_EINVAL, "0 x 2 pixels",
            strata_engine_convert_image(s.engine, 0, row, &im, &s.err));
    im = whole();
    im.height = INT32_MAX;
    REFUSED(STRATA_EINVAL, "1 to 32768",
            strata_engine_convert_image(s.engine, 0, row, &im, &s.err));
    im = whole();
    im.stride = 5;
    REFUSED(STRATA_EINVAL, "stride is 5",
            strata_engine_convert_image(s.engine, 0, row, &im, &s.err));
    im.struct_size = 0;
    REFUSED(STRATA_EINVAL, "strata_image.struct_size is 0",
            strata_engine_convert_image(s.engine, 0, row, &im, &s.err));
    im = whole();
    im.width = 1; /* the section says exactly */
    REFUSED(STRATA_EINVAL, "exactly",
            strata_engine_convert_image(s.engine, 0, row, &im, &s.err));
    REFUSED(STRATA_ENOTFOUND, "none.png",
            strata_engine_read_image(s.engine, 0, row, in_scratch("none.png"), &s.err));
    const char *text = spill_text("a.txt", "no image\n");
    REFUSED(STRATA_EPARSE, "a.txt",
            strata_engine_read_image(s.engine, 0, row, text, &s.err));
    release(&s);
}

Test(image, a_binding_without_rows_is_refused)
{
    struct session s;
    strata_image im = whole();
    float row[24];
    open_net(&s, "fp32:chwn");
    REFUSED(STRATA_EUNSUPPORTED, "fp32:chwn",
            strata_engine_convert_image(s.engine, 0, row, &im, &s.err));
    release(&s);
}

static void expect_labels(const strata_engine *e)
{
    cr_assert_eq(strata_engine_labels(e), 2);
    cr_expect_str_eq(strata_engine_label(e, 0), "cat");
    cr_expect_str_eq(strata_engine_label(e, 1), "dog");
    cr_expect_null(strata_engine_label(e, 2));
    cr_expect_null(strata_engine_label(e, -1));
}

/* The section and the labels are in the engine's file, and in its copy in memory. */
Test(image, engines_from_files_and_memory_know_them)
{
    struct session s;
    strata_image im = whole();
    strata_engine *loaded = NULL;
    float row[12];
    open_net(&s, "fp32:nchw");
    expect_labels(s.engine);
    OK(strata_engine_save(s.engine, in_scratch("net.engine"), &s.err));
    struct blob file = slurp(in_scratch("net.engine"));
    OK(strata_engine_load(&loaded, s.handle, s.registry, in_scratch("net.engine"),
                          &s.err));
    expect_labels(loaded);
    OK(strata_engine_convert_image(loaded, 0, row, &im, &s.err));
    expect_planes(row);
    strata_engine_destroy(loaded);
    OK(strata_engine_load_memory(&loaded, s.handle, s.registry, file.bytes, file.size,
                                 &s.err));
    memset(file.bytes, 0xff, file.size); /* the caller's again */
    free(file.bytes);
    expect_labels(loaded);
    memset(row, 0, sizeof row);
    OK(strata_engine_convert_image(loaded, 0, row, &im, &s.err));
    expect_planes(row);
    strata_engine_destroy(loaded);
    release(&s);
}
