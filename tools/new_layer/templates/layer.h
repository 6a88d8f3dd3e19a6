/* What @file@.c and @file@_cuda.cu share. */
#ifndef @FILE@_H
#define @FILE@_H

#include <strata/plugin.h>

@include params.inc

#endif
