/* SPDX-License-Identifier: MIT */
/* tinytrain_text.h - the text that tinytrain learns to write: a small original essay on tides and
 * memory.
 *
 * One string a paragraph, joined by an empty line when the text is turned into token ids. Plain
 * ASCII, so that one byte is one character and the vocabulary stays small. */
#ifndef TINYTRAIN_TEXT_H
#define TINYTRAIN_TEXT_H

static const char *const tt_paragraphs[] = {
    "The tide comes in and the tide goes out, and twice a day the harbour forgets what it was. "
    "At low water there are stones, chains, a lost boot, the ribs of an old boat. At high water "
    "there is only water, and the water says nothing of what it covers. The people of the harbour "
    "do not trust the water to tell them. They look at the wall. On the wall there is a line, "
    "green below and white above, and that line is the memory of every tide that ever came.",

    "A line on a wall is a modest thing. It does not say who was in the water, or why the water "
    "rose, or whether it will rise again. It says one number: so high it was. And yet from that "
    "one number the harbour is built. The quay is a foot above it. The doors are a foot above "
    "the quay. When a stranger builds below the line, nobody argues with him. They wait for the "
    "spring, and the spring argues.",

    "A machine that learns has a tide of its own. It takes a batch of letters and goes forward, "
    "layer after layer, and at each layer it puts something down that it will need on the way "
    "back. So the water rises. At the last layer it asks how wrong it was, and then it goes "
    "backward, layer after layer, and at each layer it picks up what it had put down. So the "
    "water falls. Forward and backward, high water and low water, a thousand times an hour.",

    "What is in the water? The weights are in the water, and they never leave; they are the "
    "stones of the harbour. The gradients come in with the falling tide, one for every stone, "
    "and they are gone before the next. The optimizer keeps two small notes on every stone, and "
    "it writes them on the first day and keeps them to the last. The activations are the tide "
    "itself. They come and go, and they are most of what you see when you look.",

    "There is water that does not go out again. Somewhere a hand puts down a small thing at every "
    "tide and does not pick it up: a number, a line in a list, a name that still holds on to "
    "all that was behind it. It is not much. Nobody sees it on the first day, and nobody sees "
    "it on the second. But the low water is a little higher than it was, and the high water is "
    "a little higher too, and one night the water stands in the door.",

    "When the water stands in the door, people say that the tide was too high. They say it of the "
    "last wave, because they saw the last wave. But the last wave was a wave like all the others. "
    "To know why the house is wet, do not ask the wave that came in. Ask what was in the harbour "
    "before it came. Ask which of it had a reason to be there, and which of it was only never "
    "taken away.",

    "There is also water that is nobody's. Put down a large stone and two small stones, take the "
    "large one away, and there is a hole between the small ones. A hole is room, and room is what "
    "you wanted. But the next stone is larger than the hole, and so it must go elsewhere, and the "
    "harbour grows while it is half empty. This is the saddest way to be full: to have room "
    "everywhere, and nowhere enough.",

    "The keeper of the harbour has a book. In the book there is a line for each thing that came "
    "and a line for each thing that went, with the hour, and the hand, and the place. It is a "
    "dull book. It is the dullest book in the town, and on most days nobody opens it. But on the "
    "day after the flood it is the only book that anybody wants, and then it must be complete, "
    "and it must be dry.",

    "So the keeper has rules. Write it down when it happens, not in the evening. Write little, "
    "so that the writing never holds up a boat. If the ink runs out, say that the ink ran out, "
    "and how many boats you did not write down; do not guess. If you do not know a name, leave "
    "the place empty; an empty place is honest, and a nought is not. And keep the book where the "
    "water does not reach, for a book that drowns with the house has told nobody anything.",

    "Memory is what remains when the water has gone. The sand keeps the shape of the wave for an "
    "hour, the wall keeps its height for a hundred years, and the book keeps the rest. To "
    "remember well is not to keep everything. It is to know, for each thing that you keep, who "
    "will come back for it, and when, and to let it go when they have come.",

    "Learn from the letters, then, small machine. You will not understand the harbour, and you "
    "do not need to. You will learn that after the letter q there is the letter u, that after a "
    "full stop there is a space, that the word tide comes often and the word boot comes once. "
    "Your loss will fall as the tide falls, fast at first and then slowly, and when it lies flat "
    "we will look at the line on the wall and see how high you stood.",
};

#endif
