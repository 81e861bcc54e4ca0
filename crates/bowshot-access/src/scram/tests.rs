//! The exchange of RFC 7677, and everything that a client can do wrong in it.

use super::*;

/// The example of RFC 7677, section 3: user `user`, password `pencil`.
fn example() -> Verifier {
    let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").expect("base64");
    Verifier::salted(&Secret::new("pencil"), salt, NonZeroU32::new(4_096).expect("not zero"))
}

const FIRST: &str = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
const RANDOM: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
const LAST: &str = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                    p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";

#[test]
fn the_example_of_the_rfc() {
    let mut exchange = Exchange::new(example());
    assert_eq!(
        exchange.challenge(FIRST.as_bytes(), RANDOM).as_deref(),
        Ok("r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    );
    assert_eq!(
        exchange.finish(LAST.as_bytes()).as_deref(),
        Ok("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    );
    assert_eq!(
        exchange.finish(LAST.as_bytes()),
        Err(Wrong::Message("the exchange has not begun")),
        "no message is good twice"
    );
}

#[test]
fn verifiers_come_back_as_they_were() {
    let verifier = Verifier::from_password(&Secret::new("pencil")).expect("random");
    let text = verifier.to_string();
    assert!(text.starts_with("SCRAM-SHA-256$16384:") && !text.contains("pencil"), "{text}");
    assert_eq!(Verifier::parse(&text), Some(verifier.clone()));
    assert_ne!(
        Verifier::from_password(&Secret::new("pencil")).expect("random"),
        verifier,
        "the salt is random"
    );
    let short = example().to_string();
    for bad in [
        "",
        "SCRAM-SHA-256",
        &short.replace("256$4096", "1$4096"),
        &short.replace("$4096", "$4095"),
        &short.replace("$4096", "$10000001"),
        &short.replace("$4096", "$+4096x"),
        &short.replace("W22ZaJ0SNY7soEsUEjb6gQ==", ""),
        &short[..short.len() - 5],
        &format!("{short}AAAA"),
    ] {
        assert!(Verifier::parse(bad).is_none(), "{bad}");
    }
}

#[test]
fn passwords_are_prepared_as_clients_prepare_them() {
    let salted = |password: &str| {
        salted_password(&Secret::new(password), b"salt", NonZeroU32::new(4_096).expect("not zero"))
    };
    assert_eq!(salted("I\u{ad}X"), salted("IX"), "RFC 4013, section 3");
    assert_eq!(salted("\u{2168}"), salted("IX"));
    assert_eq!(salted("pa\u{308}ss"), salted("p\u{e4}ss"));
    assert_ne!(salted("tab\t"), salted("tab"), "what is prohibited is taken as it is");
}

fn first(message: &str) -> Result<String, Wrong> {
    Exchange::new(example()).challenge(message.as_bytes(), RANDOM)
}

#[test]
fn first_messages_that_are_refused() {
    assert!(first(FIRST).is_ok() && first(&FIRST.replacen('n', "y", 1)).is_ok());
    for (message, reason) in [
        ("", "no header"),
        ("n,", "no header"),
        ("x,,n=user,r=abc", "no header"),
        ("p=tls-server-end-point,,n=user,r=abc", "channel binding is not offered"),
        ("n,a=root,n=user,r=abc", "another user"),
        ("n,,m=x,n=user,r=abc", "mandatory extension"),
        ("n,,n=user", "nonce is missing"),
        ("n,,n=user,r=", "nonce is missing"),
        ("n,,n=user,r=a b", "nonce is missing"),
    ] {
        let Err(Wrong::Message(found)) = first(message) else { panic!("{message} was taken") };
        assert!(found.contains(reason), "{message}: {found}");
    }
    let long = format!("n,,n=user,r={}", "a".repeat(MAX_MESSAGE_BYTES));
    assert!(first(&long).is_err());
    assert!(Exchange::new(example()).challenge(b"n,,n=\xff,r=abc", RANDOM).is_err());
}

#[test]
fn last_messages_that_are_refused() {
    let last = |message: &str| {
        let mut exchange = Exchange::new(example());
        exchange.challenge(FIRST.as_bytes(), RANDOM).expect("begins");
        exchange.finish(message.as_bytes())
    };
    assert!(last(LAST).is_ok());
    assert_eq!(last(&LAST.replace("dHzb", "dHzc")), Err(Wrong::Password));
    for (message, reason) in [
        (LAST.replace("biws", "eSws"), "channel binding"),
        (LAST.replace("r=rOpr", "r=xOpr"), "nonce"),
        (LAST.replace("k0,", "k0x,"), "nonce"),
        (LAST.replace(",p=", ",q="), "proof"),
        (LAST.replace("dVQ=", ""), "32 bytes"),
        (String::new(), "proof"),
    ] {
        let Err(Wrong::Message(found)) = last(&message) else { panic!("{message} was taken") };
        assert!(found.contains(reason), "{message}: {found}");
    }
    // An extension is part of what is signed.
    assert_eq!(last(&LAST.replace(",p=", ",x=1,p=")), Err(Wrong::Password));
}

#[test]
fn who_is_not_there_is_answered_alike_and_never_let_in() {
    let real = example();
    let (eve, again, bob) = (real.stand_in("eve"), real.stand_in("eve"), real.stand_in("bob"));
    assert_eq!(eve, again, "the salt of a name stays the same");
    assert_ne!(eve.salt, bob.salt);
    assert_eq!((eve.rounds, eve.salt.len()), (real.rounds, real.salt.len()));
    assert!(eve.stored_key != real.stored_key && eve.server_key != real.server_key);
    let mut exchange = Exchange::new(eve);
    exchange.challenge(FIRST.as_bytes(), RANDOM).expect("begins");
    assert_eq!(exchange.finish(LAST.as_bytes()), Err(Wrong::Password));
}
