/* SPDX-License-Identifier: Apache-2.0
 *
 * Images to tensors, against a plain double reference.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io/image/image.h"

TestSuite(image_tensor, .timeout = 600);

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

static uint64_t state;

static uint64_t seed_now(void)
{
    state = (uint64_t)time(NULL) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    return state;
}

static uint32_t draw(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32) % n;
}

static struct image random_image(int width, int height, int channels)
{
    size_t n = (size_t)width * (size_t)height * (size_t)channels;
    struct image im = {malloc(n), width, height, channels};
    cr_assert_not_null(im.pixels);
    for (size_t i = 0; i < n; i++)
        im.pixels[i] = (uint8_t)draw(256);
    return im;
}

/* Weight of source pixel j, of n, for one of `scaled` at x: a triangle around a place
 * that borders clamp, another way to say bilinear; antialiased, as wide as the pixels
 * are. */
static double triangle(int j, int n, int scaled, int x, bool antialias)
{
    double place = (x + 0.5) * n / scaled - 0.5, width = (double)n / scaled;
    return antialias && width > 1 ? fmax(0, 1 - fabs(place - j) / width)
                                  : fmax(0, 1 - fabs(fmin(fmax(place, 0), n - 1) - j));
}

/* The whole image resized to w x h, one pixel of it, written as the mean over all source
 * pixels with these weights. */
static double reference_pixel(const struct image *im, int w, int h, int x, int y, int c,
                              bool antialias)
{
    double sum = 0, weights = 0;
    for (int i = 0; i < im->height; i++)
        for (int j = 0; j < im->width; j++) {
            double weight = triangle(i, im->height, h, y, antialias) *
                            triangle(j, im->width, w, x, antialias);
            sum += weight * im->pixels[(i * im->width + j) * im->channels + c];
            weights += weight;
        }
    return sum / weights;
}

/* Size to resize to before the cut or the border. */
static void reference_size(int *w, int *h, const struct image *im, int width, int height,
                           enum image_resize resize)
{
    double sx = (double)width / im->width, sy = (double)height / im->height;
    double s = resize == IMAGE_CROP ? fmax(sx, sy) : fmin(sx, sy);
    *w = width;
    *h = height;
    if (resize == IMAGE_STRETCH || resize == IMAGE_EXACT)
        return;
    if (s == sx)
        *h = (int)fmax(1, floor(im->height * s + 0.5 + 1e-9));
    else
        *w = (int)fmax(1, floor(im->width * s + 0.5 + 1e-9));
}

static double reference(const struct image *im, const struct image_transform *t,
                        int channels, int height, int width, int c, int y, int x)
{
    int w, h;
    double v = t->fill, rgb[3];
    reference_size(&w, &h, im, width, height, t->resize);
    /* Larger: cut the centre out; smaller: centred; odd remainders go to the end. */
    x += w >= width ? (w - width) / 2 : -((width - w) / 2);
    y += h >= height ? (h - height) / 2 : -((height - h) / 2);
    if (x >= 0 && x < w && y >= 0 && y < h) {
        for (int k = 0; k < 3; k++)
            rgb[k] =
                reference_pixel(im, w, h, x, y, im->channels == 3 ? k : 0, t->antialias);
        if (im->channels == 1)
            v = rgb[0];
        else if (channels == 1 || t->channels == IMAGE_GRAY)
            v = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
        else
            v = rgb[t->channels == IMAGE_BGR ? 2 - c : c];
    }
    return (v * t->scale - t->mean[c]) / t->std[c];
}

Test(image_tensor, tensors_match_a_plain_reference)
{
    static const int sizes[][4] = {
        /* image w, h; tensor w, h */
        {1, 1, 1, 1}, {1, 1, 3, 2}, {5, 4, 5, 4},  {7, 5, 3, 2},     {3, 2, 7, 5},
        {9, 4, 4, 9}, {4, 9, 9, 4}, {13, 1, 5, 5}, {1, 13, 6, 5},    {10, 6, 5, 3},
        {8, 8, 5, 8}, {6, 7, 7, 6}, {40, 2, 3, 3}, {17, 11, 11, 17},
    };
    uint64_t seed = seed_now();
    float out[3 * 17 * 17];
    for (size_t i = 0; i < LENGTH(sizes); i++)
        for (int mode = 0; mode < 3 * 3 * 2 * 2 * 2; mode++) {
            int width = sizes[i][2], height = sizes[i][3],
                channels = mode / 18 % 2 ? 1 : 3;
            struct image_transform t = {
                .resize = (enum image_resize)(mode % 3),
                .channels = (enum image_channels)(mode / 3 % 3),
                .scale = 1 / 255.0,
                .mean = {0.485, 0.456, 0.406},
                .std = {0.229, 0.224, 0.225},
                .fill = 114,
                .antialias = mode / 36,
            };
            struct image im =
                random_image(sizes[i][0], sizes[i][1], mode / 9 % 2 ? 1 : 3);
            cr_assert_eq(image_to_tensor(out, channels, height, width, &im, &t, NULL), 0);
            for (int k = 0; k < channels * height * width; k++) {
                int c = k / (height * width), y = k / width % height, x = k % width;
                double want = reference(&im, &t, channels, height, width, c, y, x);
                cr_assert(fabs((double)out[k] - want) < 1e-5,
                          "case %zu, mode %d, channel %d, row %d, column %d: %g, not %g; "
                          "seed %llu",
                          i, mode, c, y, x, (double)out[k], want,
                          (unsigned long long)seed);
            }
            image_free(&im);
        }
}

/* The same size and the identity: the pixels themselves, exactly. */
Test(image_tensor, identity_of_the_same_size_is_exact)
{
    float out[3 * 6 * 5];
    seed_now();
    struct image im = random_image(5, 6, 3);
    for (int resize = IMAGE_STRETCH; resize <= IMAGE_EXACT; resize++) {
        struct image_transform t = image_identity;
        t.resize = (enum image_resize)resize;
        cr_assert_eq(image_to_tensor(out, 3, 6, 5, &im, &t, NULL), STRATA_OK);
        for (int i = 0; i < 90; i++)
            cr_expect(out[i] == (float)im.pixels[i % 30 * 3 + i / 30]);
    }
    image_free(&im);
}

/* Worked out by hand from the half-pixel rule. */
Test(image_tensor, known_values_of_bilinear)
{
    uint8_t pixels[] = {0, 100};
    const struct image im = {pixels, 2, 1, 1};
    static const float twice[] = {0, 25, 75, 100}, thirds[] = {0, 50, 100};
    float out[4];
    cr_assert_eq(image_to_tensor(out, 1, 1, 4, &im, &image_identity, NULL), STRATA_OK);
    for (int i = 0; i < 4; i++)
        cr_expect_float_eq(out[i], twice[i], 1e-5f);
    cr_assert_eq(image_to_tensor(out, 1, 1, 3, &im, &image_identity, NULL), STRATA_OK);
    for (int i = 0; i < 3; i++)
        cr_expect_float_eq(out[i], thirds[i], 1e-5f);
    cr_assert_eq(image_to_tensor(out, 1, 1, 1, &im, &image_identity, NULL), STRATA_OK);
    cr_expect_float_eq(out[0], 50, 1e-5f);
}

/* Made with Pillow 13.0, as Image.fromarray(a).resize(size, Image.BILINEAR); it rounds to
 * whole pixels twice, once a pass. */
Test(image_tensor, antialiased_as_pillow_resizes)
{
    /* clang-format off */
    static const struct {
        int width, height;
        uint8_t want[27];
    } cases[] = {
        {5, 4, {99, 100, 120, 138, 147, 140, 131, 136, 152, 163, 144, 145, 162, 171, 132,
                148, 139, 142, 156, 135}},
        {3, 9, {78, 84, 133, 106, 138, 155, 126, 145, 143, 125, 117, 173, 179, 169, 143,
                129, 177, 124, 145, 144, 186, 134, 144, 139, 158, 144, 125}},
        {13, 2, {134, 121, 113, 122, 136, 94, 155, 139, 128, 177, 127, 144, 176, 156, 130,
                 153, 163, 107, 149, 158, 129, 203, 170, 121, 150, 130}},
        {1, 1, {142}},
    };
    /* clang-format on */
    uint8_t pixels[9 * 13];
    for (int i = 0; i < 9 * 13; i++) {
        int x = i % 13, y = i / 13;
        pixels[i] = (uint8_t)(37 * x * x + 91 * y * y * y + x * y * 53);
    }
    const struct image im = {pixels, 13, 9, 1};
    for (int antialias = 0; antialias < 2; antialias++) {
        struct image_transform t = image_identity;
        double worst = 0;
        t.antialias = antialias;
        for (size_t i = 0; i < LENGTH(cases); i++) {
            float out[27];
            const int n = cases[i].width * cases[i].height;
            cr_assert_eq(
                image_to_tensor(out, 1, cases[i].height, cases[i].width, &im, &t, NULL),
                STRATA_OK);
            for (int k = 0; k < n; k++)
                worst = fmax(worst, fabs((double)out[k] - cases[i].want[k]));
        }
        cr_expect(antialias ? worst <= 1 : worst > 20, "antialias %d: %g apart",
                  antialias, worst);
    }
}
Test(image_tensor, impossible_tensors_are_refused)
{
    uint8_t pixels[12] = {0};
    float out[12];
    const struct image im = {pixels, 2, 2, 3}, none = {NULL, 2, 2, 3},
                       two = {pixels, 2, 2, 2};
    struct image_transform exact = image_identity, zero = image_identity,
                           infinite = image_identity;
    exact.resize = IMAGE_EXACT;
    zero.std[2] = 0;
    infinite.scale = INFINITY;
    const struct {
        int channels, height, width;
        const struct image *im;
        const struct image_transform *t;
        const char *message;
    } cases[] = {
        {2, 2, 2, &im, &image_identity, "cannot fill 2 channels; the input needs 1 or 3"},
        {4, 2, 2, &im, &image_identity, "cannot fill 4 channels"},
        {0, 2, 2, &im, &image_identity, "cannot fill 0 channels"},
        {3, 0, 2, &im, &image_identity, "2 x 0 pixels"},
        {3, 2, -1, &im, &image_identity, "-1 x 2 pixels"},
        {3, 2, 2, &none, &image_identity, "1 or 3 channels is needed"},
        {3, 2, 2, &two, &image_identity, "1 or 3 channels is needed"},
        {3, 1, 2, &im, &exact, "2 x 2 pixels, the input needs 2 x 1 exactly"},
        {3, 2, 2, &im, &zero, "channel 2: mean 0 and std 0"},
        {3, 2, 2, &im, &infinite, "scale inf"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        strata_error err = {0};
        cr_expect_eq(image_to_tensor(out, cases[i].channels, cases[i].height,
                                     cases[i].width, cases[i].im, cases[i].t, &err),
                     STRATA_EINVAL);
        cr_expect_not_null(strstr(err.message, cases[i].message), "case %zu: %s", i,
                           err.message);
    }
    cr_expect_eq(image_to_tensor(out, 1, 2, 2, &im, &zero, NULL), STRATA_OK,
                 "std of an unused channel does not matter");
}
