"""What is composed from memories without a model: profiles, topics, boxes, guidelines.

Who is one person under several names is decided in ``entities``, from what ``mentions`` reads;
where a conversation is cut into boxes, in ``boxes``. ``stage`` says what is composed anew after a
pass, ``store`` and ``versions`` how a new version takes an old one's place.
"""
