/* SPDX-License-Identifier: MIT */
/* kit/language.h - which language a person is spoken to in. What machines read never changes. */
#ifndef TMK_KIT_LANGUAGE_H
#define TMK_KIT_LANGUAGE_H

#include <stdbool.h>

/* Under zh_CN, by LC_ALL, LC_MESSAGES and LANG, of which the first that is set decides. */
bool tmk_language_is_chinese(void);

#endif
