/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementary functions of float without branches or calls, so that a loop over them is
 * vector code: within 2.5 units in the last place (tanh: 6, erf: 8; gelu_tanh as its
 * exponent's error has it), and what C's give for NaN, infinities and out of range. Those
 * that are rare compute in double, where a short polynomial is exact enough to round
 * once.
 */
#ifndef PLUGINS_COMMON_POINTWISE_FUNCTIONS_H
#define PLUGINS_COMMON_POINTWISE_FUNCTIONS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define FUNCTION static inline __attribute__((always_inline))

FUNCTION uint32_t bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

FUNCTION float float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

FUNCTION uint64_t bits_of_double(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

FUNCTION double double_of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* |x| with the sign of s. */
FUNCTION float with_sign(float x, float s)
{
    return float_of_bits((bits_of_float(x) & 0x7fffffff) |
                         (bits_of_float(s) & 0x80000000));
}

/* Bounds that a compiler does not know. Of one that it does it computes what comes of it,
 * and selects that by a comparison each; so a minimum and a maximum are all it takes. To
 * be made outside of loops. */
struct bounds {
    float low, high;
};

FUNCTION struct bounds bounds_of(float low, float high)
{
    struct bounds b = {low, high};
    __asm__("" : "+m"(b));
    return b;
}

/* Of exponents: exp of the one is 0, of the other infinite. */
#define EXP_BOUNDS bounds_of(-88, 88.5f)
/* Of tanh's and erf's arguments: from here on they are 1; and of erf's results. */
#define TANH_BOUNDS bounds_of(-7.99636221f, 7.99636221f)
#define ERF_BOUNDS bounds_of(-3.94f, 3.94f)
#define UNIT_BOUNDS bounds_of(-1, 1)

/* Into [low, high]; a NaN stays one. */
FUNCTION float above(float x, struct bounds b)
{
    return x < b.low ? b.low : x;
}

FUNCTION float between(float x, struct bounds b)
{
    x = above(x, b);
    return x > b.high ? b.high : x;
}

FUNCTION float within(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

FUNCTION double within_double(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* ---- in double -----------------------------------------------------------------------
 */

/* exp(x) - 1 and exp(x), relative error below 1e-11, for |x| <= 700: x = n*log 2 + r, and
 * n lies in the low bits of a sum with 2^52*1.5. scale is 2^n, and the value scale*(1 +
 * q). */
FUNCTION double exp_parts(double x, double *scale)
{
    const double magic = 0x1.8p52, t = x * 0x1.71547652b82fep0 + magic, n = t - magic;
    const double r = x - n * 0x1.62e42feep-1 - n * 0x1.a39ef35793c76p-33;
    double p = 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    *scale = double_of_bits((bits_of_double(t) << 52) + bits_of_double(1.0));
    return (p * r + 1) * r;
}

FUNCTION double exp_double(double x)
{
    double scale, q = exp_parts(within_double(x, -200, 200), &scale);
    return scale + scale * q;
}

FUNCTION double expm1_double(double x)
{
    double scale, q = exp_parts(within_double(x, -200, 200), &scale);
    return (scale - 1) + scale * q;
}

/* Relative error below 1e-11 for normal x; what C's gives for the rest but subnormals. */
FUNCTION double log_double(double x)
{
    /* So that the mantissa lies in [sqrt(1/2), sqrt(2)). */
    const uint64_t shifted =
        bits_of_double(x) + (bits_of_double(1.0) - 0x3fe6a09e667f3bcd);
    const double n = double_of_bits(shifted >> 52 | 0x4330000000000000) - 0x1p52 - 1023;
    const double m = double_of_bits((shifted & 0x000fffffffffffff) + 0x3fe6a09e667f3bcd);
    const double s = (m - 1) / (m + 1), z = s * s;
    double p = 1.0 / 15;
    p = p * z + 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
    p = 2 * s + 2 * s * z * p + n * 0x1.62e42fefa39efp-1;
    p = x == 0 ? -(double)INFINITY : x > 0 ? p : (double)NAN;
    return x == (double)INFINITY ? x : p;
}

/* log(1 + x) where 1 + x is not exact. */
FUNCTION double log1p_double(double x)
{
    const double u = 1 + x, lost = (x - (u - 1)) / u, y = log_double(u) + lost;
    return u == (double)INFINITY || u == 0 ? log_double(u) : y;
}

/* Sine and cosine of the rest of x by pi/2, and how many quarters it holds. Exact enough
 * for a float below POINTWISE_TURNS. */
#define POINTWISE_TURNS 1e6f
FUNCTION double quarter(double x, int64_t *quarters)
{
    const double magic = 0x1.8p52, t = x * 0x1.45f306dc9c883p-1 + magic, n = t - magic;
    *quarters = (int64_t)bits_of_double(t);
    return x - n * 0x1.921fb544p0 - n * 0x1.0b4611a626331p-34;
}

FUNCTION double sine_part(double r)
{
    const double z = r * r;
    double p = 0x16cd878c3b46a7.0p-71;
    p = p * z - 0x1a00f9e2cae774.0p-65;
    p = p * z + 0x111110896efbb2.0p-59;
    p = p * z - 0x15555554cbac77.0p-55;
    return r + r * z * p;
}

FUNCTION double cosine_part(double r)
{
    const double z = r * r;
    double p = 0x199342e0ee5069.0p-68;
    p = p * z - 0x16c087e80f1e27.0p-62;
    p = p * z + 0x155553e1053a42.0p-57;
    p = p * z - 0x1ffffffd0c5e81.0p-54;
    return 1 + z * p;
}

/* sin(x) and cos(x) as they are by half turns: the sine of what is left of x by pi, or
 * by (n + 1/2)*pi, relative error below 1e-10, and the sign by whether n is odd. */
FUNCTION float half_turn(double r, uint64_t n)
{
    const double z = r * r;
    double p = -0x1.9a67828280000p-26;
    p = p * z + 0x1.717074d3a5800p-19;
    p = p * z - 0x1.a017d94a528b8p-13;
    p = p * z + 0x1.11110c49019fcp-7;
    p = p * z - 0x1.5555554765be9p-3;
    return (float)double_of_bits(bits_of_double(r * (1 + z * p)) ^ n << 63);
}

FUNCTION float sin_float(float x)
{
    const double magic = 0x1.8p52, t = (double)x * 0x1.45f306dc9c883p-2 + magic;
    const double n = t - magic, r = (double)x - n * 0x1.921fb544p1;
    return half_turn(r - n * 0x1.0b4611a626331p-33, bits_of_double(t));
}

FUNCTION float cos_float(float x)
{
    const double magic = 0x1.8p52, t = (double)x * 0x1.45f306dc9c883p-2 - 0.5 + magic;
    const double n = t - magic + 0.5, r = (double)x - n * 0x1.921fb544p1;
    return half_turn(n * 0x1.0b4611a626331p-33 - r, bits_of_double(t));
}

FUNCTION float tan_float(float x)
{
    int64_t n;
    const double r = quarter((double)x, &n), s = sine_part(r), c = cosine_part(r);
    const double y = n & 1 ? -c / s : s / c;
    return x == 0 ? x : (float)y;
}

FUNCTION float expm1_float(float x)
{
    return x == 0 ? x : (float)expm1_double((double)x);
}

FUNCTION float sinh_float(float x)
{
    const double u = expm1_double(fabs((double)x)); /* no loss where x is small */
    return with_sign((float)(0.5 * (u + u / (u + 1))), x);
}

FUNCTION float cosh_float(float x)
{
    const double e = exp_double((double)x);
    return (float)(0.5 * (e + 1 / e));
}

FUNCTION float asinh_float(float x)
{
    const double a = fabs((double)x), z = a * a;
    return with_sign((float)log1p_double(a + z / (1 + sqrt(1 + z))), x);
}

FUNCTION float acosh_float(float x)
{
    const double u = (double)x - 1, y = log1p_double(u + sqrt(u * (u + 2)));
    return x < 1 ? NAN : (float)y;
}

FUNCTION float atanh_float(float x)
{
    const double a = fabs((double)x);
    return with_sign((float)(0.5 * log1p_double(2 * a / (1 - a))), x);
}

/* What C's powf gives, NaN and infinities too. */
FUNCTION float pow_float(float x, float y)
{
    const double l = log_double(fabs((double)x)), half = (double)y * 0.5;
    double p = exp_double((double)y * l);
    const int whole = floor((double)y) == (double)y;
    const int odd = whole & (floor(half) != half) & (fabsf(y) < 0x1p24f);
    const int negative = (int)(bits_of_float(x) >> 31) & (x == x);
    p = l == 0 ? 1 : p;
    p = odd & negative ? -p : p;
    p = (x < 0) & (x > -INFINITY) & !whole ? (double)NAN : p;
    return (y == 0) | (x == 1) ? 1 : (float)p;
}

/* ---- in float ------------------------------------------------------------------------
 */

/* (exp(r) - 1 - r)/r^2 for |r| <= log(2)/2. */
FUNCTION float exp_tail(float r)
{
    float p = 0x1.6a23cep-10f;
    p = p * r + 0x1.123a2p-7f;
    p = p * r + 0x1.5558f2p-5f;
    p = p * r + 0x1.555492p-3f;
    return p * r + 0x1.fffffcp-2f;
}

FUNCTION float exp_part(float r)
{
    return (exp_tail(r) * r + 1) * r + 1;
}

/* x - n*log 2, and 2^n, of -87 <= x <= 88. */
FUNCTION float exp_rest(float x, float *scale)
{
    const float magic = 0x1.8000fep23f; /* the exponent's bias besides */
    const float t = x * 0x1.715476p0f + magic, n = t - magic;
    *scale = float_of_bits(bits_of_float(t) << 23);
    return x - n * 0x1.62ep-1f - n * 0x1.0bfbe8p-15f;
}

/* exp(x) of -87 <= x <= 88: 2^n is then a float. A NaN stays one. */
FUNCTION float exp_inside(float x)
{
    float scale;
    const float r = exp_rest(x, &scale);
    return exp_part(r) * scale;
}

FUNCTION float exp_float(float x)
{
    const float magic = 0x1.8p23f, limited = within(x, -104, 89);
    const float t = limited * 0x1.715476p0f + magic, n = t - magic;
    const float r = limited - n * 0x1.62ep-1f - n * 0x1.0bfbe8p-15f;
    const int32_t whole = (int32_t)(bits_of_float(t) - bits_of_float(magic));
    const int32_t half = whole >> 1; /* 2^n may lie past the range that the value is in */
    return exp_part(r) * float_of_bits((uint32_t)(half + 127) << 23) *
           float_of_bits((uint32_t)(whole - half + 127) << 23);
}

/* Of x <= 0: below about -87.7 it is 0, for 2^-127 has the bits of 0. */
FUNCTION float exp_falling(float x, struct bounds b)
{
    return exp_inside(above(x, b));
}

/* The same as a part of a sum whose largest is exp(0), by log 2 as one float: off by
 * n*2^-29, and without FMA by n*log 2's rounding, which is no more than x's. */
FUNCTION float exp_of_sum(float x, struct bounds b)
{
    const float magic = 0x1.8000fep23f, least = above(x, b);
    const float t = least * 0x1.715476p0f + magic, n = t - magic;
    return exp_part(least - n * 0x1.62e430p-1f) * float_of_bits(bits_of_float(t) << 23);
}

/* exp(x) - 1 of x <= 0: 2^n*(exp(r) - 1) + (2^n - 1) loses nothing where x is small. */
FUNCTION float expm1_falling(float x, struct bounds b)
{
    float scale;
    const float r = exp_rest(above(x, b), &scale);
    return scale * (exp_tail(r) * (r * r) + r) + (scale - 1);
}

/* (log(1 + m) - m + m^2/2)/m^3 for sqrt(1/2) <= 1 + m <= sqrt(2). */
FUNCTION float log_tail(float m)
{
    float p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    return p * m + 3.3333331174e-1f;
}

FUNCTION float log_float(float x)
{
    const int tiny = x < 0x1p-126f;
    const float scaled = tiny ? x * 0x1p24f : x;
    const uint32_t shifted = bits_of_float(scaled) + (0x3f800000 - 0x3f3504f3);
    const float n = (float)((int32_t)(shifted >> 23) - 127 - (tiny ? 24 : 0));
    const float m = float_of_bits((shifted & 0x007fffff) + 0x3f3504f3) - 1, z = m * m;
    float p = log_tail(m) * m * z + n * -2.12194440e-4f - 0.5f * z + m + n * 0.693359375f;
    p = x == 0 ? -INFINITY : x > 0 ? p : NAN;
    return x == INFINITY ? x : p;
}

/* x*P(x^2)/Q(x^2), a minimax quotient (of Eigen's coefficients), which from 8.09 on is
 * above 1 now and then. At the bounds it is 1, with FMA and without, and below them never
 * above. */
FUNCTION float tanh_float(float x, struct bounds b)
{
    const float a = between(x, b), z = a * a;
    float p = -2.76076847742355e-16f * z + 2.00018790482477e-13f;
    float q = 1.19825839466702e-06f * z + 1.18534705686654e-04f;
    p = p * z - 8.60467152213735e-11f;
    p = p * z + 5.12229709037114e-08f;
    p = p * z + 1.48572235717979e-05f;
    p = p * z + 6.37261928875436e-04f;
    p = p * z + 4.89352455891786e-03f;
    q = q * z + 2.26843463243900e-03f;
    q = q * z + 4.89352518554385e-03f;
    return p / q * a;
}

FUNCTION float sigmoid_float(float x, struct bounds b)
{
    return 1 / (1 + exp_inside(between(-x, b)));
}

/* x*P(x^2)/Q(x^2), a minimax quotient; at the bounds it is above 1. */
FUNCTION float erf_float(float x, struct bounds b, struct bounds unit)
{
    const float a = between(x, b), z = a * a;
    float p = 0x1.6d6d4ap-20f * z + 0x1.64c9c2p-13f;
    float q = 0x1.956576p-16f * z + 0x1.4f3dep-11f;
    p = p * z + 0x1.030f38p-9f;
    q = q * z + 0x1.132772p-7f;
    p = p * z + 0x1.f756f2p-6f;
    q = q * z + 0x1.0bd43p-4f;
    p = p * z + 0x1.b4fd7cp-4f;
    q = q * z + 0x1.2cfb22p-2f;
    p = p * z + 0x1.598f4p-1f;
    q = q * z + 0x1.323e84p-1f;
    return between(p / q * a, unit);
}

/* x*(1 + tanh(u))/2 = x/(1 + exp(-2u)), u = sqrt(2/pi)*(x + 0.044715*x^3). */
FUNCTION float gelu_tanh_float(float x, struct bounds b)
{
    const float u = x * (1.5957691216f + 0.0713548163f * (x * x));
    return x / (1 + exp_inside(between(-u, b)));
}

/* asin of [0, 1/2]. */
FUNCTION float asin_part(float x)
{
    const float z = x * x;
    float p = 4.2163199048e-2f;
    p = p * z + 2.4181311049e-2f;
    p = p * z + 4.5470025998e-2f;
    p = p * z + 7.4953002686e-2f;
    p = p * z + 1.6666752422e-1f;
    return p * z * x + x;
}

FUNCTION float asin_float(float x)
{
    const float a = fabsf(x);
    const float small = asin_part(a);
    const float large = 1.57079637f - 2 * asin_part(sqrtf(0.5f * (1 - a)));
    return with_sign(a > 0.5f ? large : small, x) + (a > 1 ? NAN : 0);
}

FUNCTION float acos_float(float x)
{
    const float a = fabsf(x), root = 2 * asin_part(sqrtf(0.5f * (1 - a)));
    const float large = x < 0 ? 3.14159274f - root : root;
    return a > 0.5f ? large : 1.57079637f - with_sign(asin_part(a), x);
}

FUNCTION float atan_float(float x)
{
    const float a = fabsf(x);
    const int far = a > 2.41421356f, middle = a > 0.41421356f;
    const float base = far ? 1.57079637f : middle ? 0.785398163f : 0;
    const float t = (far ? -1 : middle ? a - 1 : a) / (far ? a : middle ? a + 1 : 1);
    const float z = t * t;
    float p = 8.05374449538e-2f;
    p = p * z - 1.38776856032e-1f;
    p = p * z + 1.99777106478e-1f;
    p = p * z - 3.33329491539e-1f;
    return with_sign(base + (p * z * t + t), x);
}

/* log(1 + exp(x)) = max(x, 0) + log(1 + t), 0 <= t <= 1. */
FUNCTION float softplus_float(float x, struct bounds b)
{
    const float t = exp_falling(-fabsf(x), b);
    const int half = t > 0.41421356f; /* then log 2 + log((1 + t)/2) */
    const float m = half ? 0.5f * t - 0.5f : t;
    const float n = half ? 1 : 0, z = m * m;
    const float rest = log_tail(m) * m * z + n * -2.12194440e-4f - 0.5f * z + m;
    return (x < 0 ? 0 : x) + (rest + n * 0.693359375f);
}

/* x*tanh(softplus(x)) by the square of 1 + exp(x); past 20 the factor is 1. */
FUNCTION float mish_float(float x)
{
    const float e = exp_float(x > 20 ? 20 : x), n = e * (e + 2);
    return x * (n / (n + 2));
}

#undef FUNCTION

#endif /* PLUGINS_COMMON_POINTWISE_FUNCTIONS_H */
