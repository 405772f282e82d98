INSERT INTO legal_versions (kind, version, text, publish_time) VALUES
('terms', 1, $text$# Terms of service

## What Afterthoughts does
You prepare letters, notes, videos and yearly messages for the people you choose. We keep them sealed while you live. After the administrator whom you named has confirmed your passing, we deliver each message to its recipients at the time you set.

## Your account
- You are at least 18 years old and give your own, true address.
- You keep your password to yourself and tell us when somebody else may know it.
- One account belongs to one person. It cannot be passed on.

## Your messages
Your messages remain yours. You give us only the right to store them, and to deliver them as you asked. You are answerable for what you write: do not threaten, deceive or harass anyone, and do not use what belongs to others. We may refuse to deliver a message that has been reported and found unlawful.

## Your administrator
You choose who may confirm your passing, and you may change that choice at any time. We deliver nothing before a confirmation. Once a passing is confirmed, your account takes no more sign-ins and your messages can no longer be changed.

## Your recipients
We ask people whom you name whether they want to receive messages from you. They may decline at any time.

## What we cannot promise
We keep several protected copies of your messages, and try deliveries again when they fail. We cannot reach a person whose address no longer works, and we do not know of a passing that nobody confirms.

## Ending
You may close your account at any time. We may suspend an account that breaks these terms, and say why.

## Changes
When these terms change we publish a new version and ask you to accept it. The version that you accepted is recorded.
$text$, now()),
('privacy_policy', 1, $text$# Privacy policy

## What we keep
- Your email address, display name and time zone.
- Your password and the answer to your security question, as hashes from which neither can be read.
- Your messages, videos and documents, encrypted with a key of your own.
- The names and addresses of the people you choose, so that we can reach them.
- When you signed in, and which terms you accepted.

## What we use it for
To keep your account safe, to deliver your messages as you asked, and for nothing else. We sell nothing and show no advertisements.

## Who can read it
Your messages are readable to you while you live, and to their recipients once delivered. Our staff cannot read them. The person who confirms your passing sees only what you prepared for them.

## How long we keep it
Your messages stay until the last of them has been delivered, or until you delete them. When you close your account, the key that your content is encrypted with is destroyed.

## Your rights
You may see, correct and delete your data, and take it with you. Write to us at any time; you may also complain to your data protection authority.
$text$, now());
