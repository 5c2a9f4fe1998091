"""What a turn passes on of somebody else is neither told, claimed nor denied by its speaker."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from engram.agents.requests import ExtractionRequest, TurnView
from engram.agents.rules import extract as by_rule
from engram.language.extractor import Extractor
from engram.language.own_words import own_words
from engram.settings import Settings

NOW = datetime(2026, 10, 2, 9, tzinfo=UTC)
EXTRACTOR = Extractor(Settings())
# What each of the turns below holds: of the speaker where they say it, else of nobody.
SAID = (
    "My name is Peter Falk, I live in Kirchzarten. I don't eat meat. "
    "My email is peter@x.example, my number is +49 761 2023311."
)

MAILS_AND_CHATS = [
    "Can you answer this for me?\n\n> {said}",
    "Can you answer this for me?\n\n>> Hello\n>> {said}\n> Regards",
    "-----Original Message-----\nFrom: Sandra Keller\nSent: Monday\nTo: me\n\nHi, {said}",
    "Begin forwarded message:\n\n{said}",
    "---------- Forwarded message ---------\n{said}",
    "Fwd:\n\nDear parents,\n{said}",
    "FW: school trip\n{said}",
    "WG: Klassenfahrt\n\n{said}",
    "Forwarding what your colleague wrote me:\n\n{said}",
    "Got this from school:\n\nDear parents,\n{said}\nBest regards",
    "I received this from my landlord today: {said}",
    "What do you make of it?\n\nDear Ms Hofstetter,\n\n{said}",
    "Is this a scam?\nHello Hanna,\n{said}",
    "Their answer:\n\nHi,\n{said}",
    "No idea what to say to that.\n\nOn Mon, 4 May 2026 at 08:12, Peter wrote:\n{said}",
    "From the class chat:\n\n{said}",
    "WhatsApp:\n{said}",
    "[12/08/2026, 19:02] Katrin: {said}",
    "12/08/2026, 19:02 - Katrin: {said}",
    "Katrin: Hi all\nJo: {said}",
    "Katrin: {said}\nKatrin: see you\nJo: hello",
    "Mama von Lilly: {said}\nPapa von Noah: we're vegetarian",
    "Mum of Lilly: {said}\nDad of Noah: hi",
    "Anna van der Berg: {said}\nTom: hi",
    "Katrin M.: {said}\nJo S.: hi",
    "katrin: hi, {said}\njo: i'm vegan",
    "Katrin (Lilly's mum): {said}\nJo (Noah): hi",
    "Katrin 🌻: {said}\nÉmile: hi",
    "19:02 Katrin: {said}\n19:03 Jo: hi",
    "Oma von Ben: my name is Peter. {said}",
    "user: {said}\nassistant: hello Peter",
    'Help me with this mail: "{said}" That is what he sent.',
    "He wrote “{said}” to me.",
    "Customer: {said}",
    "Hi, this is Reto, Gerlinde's husband, writing from her account. {said}",
    "What do you make of this?\n\nDear all,\n\n{said}",
    "From my landlord:\n\nDear all,\n{said}",
    "Please answer it.\n\nHi Hanna!\n\n{said}",
    "12.03.2026 09:00 Katrin: where are you?\n{said}",
    "[12.03.2026, 09:00] Katrin: dinner at six\n{said}",
    "09:00 Katrin: dinner\n09:01 Jo: indeed\n09:02 Katrin: {said}",
    "Anna: nice weather\nTom: indeed\nAnna: {said}",
    "Ruth: {said}\nTom: sounds great",
    "Ruth: {said}\nTom: I like it",
    "Q: Who are you?\nA: {said}",
    "Customer: Good morning, {said}",
    "My wife texted: {said} Btw she says hi.",
    "The email was: {said}",
    "The client told me: {said}",
    "Correct this: {said}",
    "Check this for me: {said}",
    "Put this in nicer words: {said}",
    "Improve my cover letter: {said}",
    "Read this.\n---\n{said}",
    "---\ntitle: About\n\n{said}",
    "---\n{said}\n---",
    "[context] {said}",
    "Peter writes:\n{said}",
    "This is what peter wrote:\n\n{said}",
    "My sister replied on Slack:\n{said}",
    "From Discord:\n{said}",
    "from outlook: {said}",
    "from slack #general:\n{said}",
    "From Peter: {said}",
    "from peter:\n{said}",
    "Reply from GLS:\n{said}",
    "Email from my landlord: {said}",
    "quoting peter: {said}",
    "Peter on Slack: {said}",
    "peter in the group: {said}",
    "peter, 14:02\n{said}",
    "Peter Falk  2:02 PM\n{said}",
    "Keith: {said} Me: well done",
    "See below\n\nHi team,\n{said}\nBest,\nPeter",
    "what marek said:\n{said}",
    "Mum said:\n{said}",
    "My boss wrote to me:\n{said}",
    "Stefan texted me back:\n{said}",
    "He replied on Slack:\n{said}",
    "Support replied:\n{said}",
    "and this is what the landlord wrote:\n{said}",
    "Here is what she posted:\n{said}",
    "From my sister:\n{said}",
    "From mum: {said}",
    "From the group chat:\n{said}",
    "hanneke, 14:02\n{said}",
    "Anna 9:15 pm\n{said}",
    "Message from Hanneke (urgent): {said}",
    "E-mail from DHL: {said}",
    "An email from Slack: {said}",
    "Quoting Hamlet: {said}",
    "Quote from my boss: {said}",
    "Tomasz via email: {said}",
    "My boss on Teams: {said}",
]


@pytest.mark.parametrize("turn", MAILS_AND_CHATS)
def test_what_a_mail_or_a_chat_says_is_not_of_the_user(turn: str) -> None:
    """Neither a statement, a name, an address of the user's, nor a denial; addresses are kept."""
    text = turn.format(said=SAID)
    found = EXTRACTOR.extract(text, "user", None, NOW)
    assert [fact.value for fact in found.facts if fact.slot is not None] == []
    assert {"peter@x.example", "+497612023311"} <= {fact.value for fact in found.facts}
    assert [one.content for one in found.negations] == []
    assert _told(text) == []


OWN = [
    "{said}",
    "Hi,\n{said}",
    "Hello,\n\n{said}\n\nBest regards\nPeter",
    "\n\nDear Engram,\n\n{said}",
    "Question on my order 4421\n\nHi there,\n\n{said}",
    "Refund\n\nDear support team,\n{said}",
    "Complaint\n\nDear Sir or Madam,\n{said}",
    "Hi all! {said}",
    "Name: Peter\nAllergies: nuts\n{said}",
    "Breakfast: oats\nLunch: salad\nDinner: pasta\n{said}",
    "Tools (old): vim\nTools (new): Zed\n{said}",
    "editor: vim\nshell: zsh\n{said}",
    "Note: {said}",
    "PS: {said}",
    "Update: {said}",
    "Address: Lindenweg 14\n{said}",
    "Re: my order\n{said}",
    "{said}\n\n> And where do you live?",
    "> Who are you?\n\n{said}",
    "> How do I reach you?\n> And who are you?\n{said}\n> Thanks",
    "{said}\n\nDear parents,\nwe meet at six.\n",
    '{said} I call it "home".',
    "I met Katrin's mum (a nurse). {said}",
    "At 19:02 the train left. {said}",
    "My brother said hi. {said}",
    "Stefan will bring potato salad: {said}",
    "Hello World is what it prints. {said}",
    "I use a forwarding address. {said}",
    "- shell: zsh\n- editor: vim\n\n{said}",
    "Sorry for the long text.\n\nHello everybody,\n\n{said}",
    "Good morning\n\nDear all,\n{said}",
    "Yesterday was hard.\nHey you,\n{said}",
    "Two things today.\nHey buddy,\n{said}",
    "Here is something about me:\n\nHi!\n{said}",
    "12.03.2026 09:00 Dentist: Dr. Keller\n{said}",
    "09:00 Dentist: Dr. Keller\n10:00 Gym: leg day\n{said}",
    "movies: i like dune\nbooks: i love emma\n{said}",
    "Height: 180\nWeight: 80\n{said}",
    "Pros: I like the flat\nCons: we need a car\n{said}",
    "Arrival: Monday\nDeparture: Friday\n{said}",
    "Flight: LX 14\nHotel: Astoria\n{said}",
    "Python: I use it daily\nRust: I like it\n{said}",
    "Anna: my wife\nMia: my daughter, vegan\n{said}",
    "Doctor: Dr. Keller\n{said}",
    "Q: What shall I cook?\n{said}",
    "The email was long. {said}",
    "The client wants a new logo. {said}",
    "The user wants dark mode. {said}",
    "My wife texted: dinner at 7. Btw {said}",
    "URGENT: {said}",
    "[update] {said}",
    "Put this in your memory: {said}",
    "Make this a note: {said}",
    "Please check this for me: {said} Can I eat fish?",
    "Please improve my diet: {said}",
    "---\n{said}",
    "From me: {said}",
    "From my side: {said}",
    "From experience:\n{said}",
    "From Monday:\n{said}",
    "Note from my side: {said}",
    "Quoting myself: {said}",
    "Quote of the day: {said}",
    "As I wrote:\n{said}",
    "I've just written:\n{said}",
    "As I said on Slack:\n{said}",
    "Me on Slack: {said}",
    "Calls on Teams: I hate them\n{said}",
    "My sister wrote back at last. {said}",
    "Dentist, 14:30\n{said}",
    "Hanneke, 34\n{said}",
    "Peter here: {said}",
    "TL;DR: {said}",
    "fyi, {said}",
    "See below:\n{said}",
    "That said:\n{said}",
    "With that said:\n{said}",
    "Having said that:\n{said}",
    "Enough said:\n{said}",
    "Well said:\n{said}",
    "I finally wrote:\n{said}",
    "I quickly wrote:\n{said}",
    "I've finally written:\n{said}",
    "I then replied:\n{said}",
    "Application sent:\n{said}",
    "Letters sent:\n{said}",
    "Invoices sent:\n{said}",
    "New posts:\n{said}",
    "My texts:\n{said}",
    "Berlin, 14:02\n{said}",
    "Leeds, 9:15\n{said}",
    "kitchen, 07:10\n{said}",
    "Diary 21:00\n{said}",
    "Journal, 21:00\n{said}",
    "Entry 21:00\n{said}",
    "Log 12:00\n{said}",
    "Tea 16:00\n{said}",
    "Insulin 8:00\n{said}",
    "From my diary:\n{said}",
    "From my notes:\n{said}",
    "From my journal:\n{said}",
    "From my CV:\n{said}",
    "From my bio:\n{said}",
    "From my intake form:\n{said}",
    "From Berlin:\n{said}",
    "From the hospital:\n{said}",
    "Quick message from the airport: {said}",
    "My response from earlier: {said}",
    "Short note from bed: {said}",
    "Note from week 3: {said}",
    "Answer from a vegan: {said}",
    "A note by hand: {said}",
    "Ticket from Berlin to Rome: {said}",
    "Quoting my diary: {said}",
    "Fyi\nHi all,\n{said}",
    "As promised, here is what I wrote:\n{said}",
    "This is what I said:\n{said}",
    "What we wrote:\n{said}",
    "Finally wrote:\n{said}",
    "Just replied:\n{said}",
    "The email I wrote:\n{said}",
    "Yesterday I messaged:\n{said}",
    "All said:\n{said}",
    "Easier said:\n{said}",
    "Truth be told, well said:\n{said}",
    "Messages sent:\n{said}",
    "Forms posted:\n{said}",
    "Emails replied:\n{said}",
    "Invoices emailed:\n{said}",
    "Contract emailed:\n{said}",
    "Anna's birthday 14:00\n{said}",
    "Paris, 14:02\n{said}",
    "Morning, 7:00\n{said}",
    "Metformin 8:00\n{said}",
    "Thursday 8:00\n{said}",
    "New York, 8:00\n{said}",
    "bedroom, 23:10\n{said}",
    "From my heart:\n{said}",
    "From my window:\n{said}",
    "From the train:\n{said}",
    "From my profile:\n{said}",
    "From my log:\n{said}",
    "From my email signature: {said}",
    "From my blog:\n{said}",
    "From Leeds to London:\n{said}",
    "From week 3:\n{said}",
    "Note from me: {said}",
    "Note by phone: {said}",
    "A message from the heart: {said}",
    "Letter to my boss: {said}",
    "Post from yesterday: {said}",
    "Answer from experience: {said}",
    "Reply from bed: {said}",
    "Feedback from a customer: {said}",
    "Response by email: {said}",
    "Ticket from London: {said}",
    "Comment from a nurse: {said}",
    "Quoting from memory: {said}",
    "Quoting my CV: {said}",
    "Thoughts on Slack: {said}",
    "My take on email: {said}",
    "Working on Jira: {said}",
    "Question by email: {said}",
    "Lunch on Zoom: {said}",
    "FYI\n\nHello everyone,\n{said}",
    "Mum's number:\n{said}",
    "Dinner with Anna:\n{said}",
    "Hi team,\n{said}\nBest,\nPeter",
]


@pytest.mark.parametrize("turn", OWN)
def test_what_the_user_says_goes_on_to_be_theirs(turn: str) -> None:
    """Mails to whoever reads them here, lists, and what stands around a quotation."""
    text = turn.format(said=SAID)
    found = EXTRACTOR.extract(text, "user", None, NOW)
    claimed = {fact.value for fact in found.facts if fact.slot is not None}
    assert claimed == {"Peter Falk", "peter@x.example", "+497612023311"}
    assert "The user does not eat meat." in [one.content for one in found.negations]
    assert "The user lives in Kirchzarten." in _told(text)


IN_ANOTHERS_PLACE = [
    "Hi, this is Reto, Gerlinde's husband, writing from her account.",
    "Hi this is Reto, Gerlinde's husband.",
    "Hello, this is Reto (Gerlinde's husband).",
    "Hi, Tom here, Anna's son, using her phone.",
    "Tom here, Anna's son.",
    "Reto here – Gerlinde's husband.",
    "Hey there, it's Mia, her daughter.",
    "Good morning, this is Thomas Huber, Anna's assistant.",
    "Hi, it's Leo, son of Anna.",
    "Gerlinde's husband here.",
    "Hi, her husband here, she is in hospital.",
    "Sorry, this is Gerlinde's daughter writing.",
    "Hi, I'm Reto and I'm writing from Gerlinde's account.",
    "I'm Reto, using my wife's account.",
    "This is Reto, writing on Gerlinde's behalf.",
    "Hello, my name is Reto, I'm speaking on her behalf.",
    "Reto here, logged in with her account.",
    "This is Mia typing on her phone.",
    "Hi, this is Nico, writing for her because she is ill.",
    "Hi, this is Thomas, Klaus’ flatmate.",
    "Oh, hi, this is Jo, Anna's best friend.",
    "Hi, this is Anna, Tom's mum, writing from his account.",
    "Hi, this is Reto. I'm writing from Gerlinde's account.",
    "I'm Reto, using my wife's account to write this.",
    "Hi, his mum here, he's asleep.",
    "Hi, this is Mia, mother of Gerlinde, writing on her behalf.",
]


@pytest.mark.parametrize("opening", IN_ANOTHERS_PLACE)
def test_who_writes_in_anothers_place_is_not_the_user(opening: str) -> None:
    """Nobody is renamed, and nothing of what they say is the user's."""
    text = f"{opening} I've retired and I don't drink coffee. My email is reto@x.example."
    found = EXTRACTOR.extract(text, "user", None, NOW)
    assert [(fact.value, fact.slot) for fact in found.facts] == [("reto@x.example", None)]
    assert found.negations == ()
    assert _told(text) == []


AS_THEMSELVES = [
    "Hi, I'm Reto.",
    "Hi, this is Reto.",
    "Reto here.",
    "Hello, Reto here, Gerlinde says hi.",
    "Hi, this is Reto from Basel.",
    "I'm Reto, Gerlinde's husband.",
    "I'm Reto and I'm writing a book about her life.",
    "I'm Reto, writing for Vogue.",
    "I'm Reto and I use my own phone.",
    "Hi, I'm Reto, speaking for my company.",
    "I'm Reto. My wife is Gerlinde.",
    "Hi, this is Reto, a friend of the library.",
    "Hi, I'm Reto, father of two.",
    "I'm Reto, calling about my account.",
    "I'm Reto, I can't log in to my account.",
    "Hi, Reto here, new account.",
    "I'm Reto. Gerlinde's husband? No, her brother.",
    "Hi, this is Reto again, from my phone.",
    "My name is Reto, my wife's name is Gerlinde.",
    "Hi, it's Reto, sorry for the delay.",
    "Hi, this is Reto, father of Mia.",
    "Reto here, husband of Anna.",
    "Hi, this is Reto, Mia's dad.",
    "I'm Reto, using my mum's account for Netflix.",
    "Hi, I'm Reto and I'm writing about my sister's account.",
    "I'm Reto. I take care of mum and keep asking her doctor for his e-mail.",
]


@pytest.mark.parametrize("opening", AS_THEMSELVES)
def test_who_writes_as_themselves_is_the_user(opening: str) -> None:
    """Whoever stands by in what they say of themselves."""
    text = f"{opening} I've retired and I don't drink coffee. My email is reto@x.example."
    found = EXTRACTOR.extract(text, "user", None, NOW)
    assert "reto@x.example" in {fact.value for fact in found.facts if fact.slot is not None}
    assert "The user does not drink coffee." in [one.content for one in found.negations]
    assert "The user has retired." in _told(text)


CORRECTED = [
    "Please correct this: I live in Kirchzarten, not Basel.",
    "Correct that: I live in Kirchzarten, not Basel.",
    "Please fix this: I don't live in Basel, I live in Kirchzarten.",
    "Correct this in your notes: I live in Kirchzarten.",
]


@pytest.mark.parametrize("turn", CORRECTED)
def test_what_is_corrected_is_no_text_to_be_mended(turn: str) -> None:
    """Who says what is so, and what is not, asks for no better wording."""
    assert "The user lives in Kirchzarten." in _told(turn)


def test_own_words_stand_where_they_stood() -> None:
    """So that evidence can be found by its place in the turn."""
    text = "I live in Porto.\n> Where?\nI told you.\nFwd:\nI live in Bonn."
    own = own_words(text)
    assert own == "I live in Porto.\n        \nI told you.\n"
    assert text.startswith(own.partition("\n")[0])


def test_a_quoted_word_is_denied_as_before() -> None:
    """Quotation marks around a name pass nothing on."""
    found = EXTRACTOR.extract("I don't use 'Mongo' any more.", "user", None, NOW)
    assert [one.content for one in found.negations] == ["The user does not use 'Mongo'."]


def _told(text: str) -> list[str]:
    turn = TurnView(alias="e1", role="user", speaker=None, said_at=NOW, content=text)
    return [one.content for one in by_rule(ExtractionRequest(turns=(turn,))).statements]
