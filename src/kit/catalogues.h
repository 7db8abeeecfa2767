/* SPDX-License-Identifier: MIT */
/* kit/catalogues.h - the catalogues that the build makes of po/ (tools/po_to_c). */
#ifndef TMK_KIT_CATALOGUES_H
#define TMK_KIT_CATALOGUES_H

#include "kit/language.h"

extern const struct tmk_catalogue tmk_catalogue_zh;

#endif
