//! The exchange at the start of a connection, for both sides. See the diagram of the [transport](super).
//!
//! The limit on its time is the caller's.

use super::error::DialCause;
use super::frame::{Fault, Frame, FrameReader, FrameWriter, Kind, decode, encode};
use super::hello::{Hello, Refused, Unheard, VERSION, Welcome, decode_hello, encode_hello};
use super::limits::BODY_MAX_BYTES;
use super::secret::{Nonce, Secret, Side, Transcript, draw_nonce};

/// Why a listener did not let a dialler in.
#[derive(Debug)]
pub(super) enum Turned {
    /// The dialler was told why.
    Away(Refused),
    /// The connection failed.
    Fault(Fault),
}

impl From<Fault> for Turned {
    fn from(fault: Fault) -> Turned {
        Turned::Fault(fault)
    }
}

/// The dialler's side. Frames can be exchanged when it returns.
pub(super) async fn dial(
    reader: &mut FrameReader,
    writer: &mut FrameWriter,
    hello: &Hello,
    secret: Option<&Secret>,
) -> Result<Welcome, DialCause> {
    let nonce = secret.map(|_| draw_nonce());
    let opening = encode_hello(hello, nonce);
    say(writer, Kind::Hello, opening.clone()).await.map_err(failed)?;
    if let (Some(secret), Some(nonce)) = (secret, nonce) {
        let challenge = expect(reader, Kind::Challenge).await?;
        let theirs: Nonce = decode(&challenge, "the challenge cannot be read").map_err(failed)?;
        let transcript = Transcript::new(secret, &nonce, &theirs, &opening);
        say(writer, Kind::Proof, transcript.prove(Side::Dialler)).await.map_err(failed)?;
        let proof = expect(reader, Kind::Proof).await?;
        transcript.verify(Side::Listener, &proof).map_err(|_| {
            DialCause::Untrusted(
                "the node does not prove that it knows the secret: check the secret files".to_owned(),
            )
        })?;
        reader.set_seal(transcript.seal(Side::Listener));
        writer.set_seal(transcript.seal(Side::Dialler));
    }
    let frame = reader.read().await.map_err(failed)?;
    let welcome: Welcome = match frame.kind {
        Kind::Welcome => decode(&frame.body, "the welcome cannot be read").map_err(failed)?,
        Kind::Refused => return Err(refusal(&frame.body, |_| true)),
        _ => return Err(failed(Fault::Malformed("a welcome was due"))),
    };
    hello.check(&welcome).map_err(DialCause::Refused)?;
    reader.set_body_max(BODY_MAX_BYTES);
    Ok(welcome)
}

/// A frame of the proofs, from a listener that has not proven itself.
async fn expect(reader: &mut FrameReader, kind: Kind) -> Result<Vec<u8>, DialCause> {
    let frame = reader.read().await.map_err(failed)?;
    match frame.kind {
        Kind::Refused => Err(refusal(&frame.body, Refused::precedes_proof)),
        got if got == kind => Ok(frame.body),
        Kind::Welcome => Err(DialCause::Untrusted(
            "the node does not prove that it knows the secret: give it the secret file too".to_owned(),
        )),
        _ => Err(failed(Fault::Malformed("a proof was due"))),
    }
}

fn refusal(body: &[u8], is_credible: impl FnOnce(&Refused) -> bool) -> DialCause {
    match decode::<Refused>(body, "the refusal cannot be read") {
        Ok(refused) if is_credible(&refused) => DialCause::Refused(refused),
        Ok(_) => failed(Fault::Malformed("the peer refused before it proved itself")),
        Err(fault) => failed(fault),
    }
}

fn failed(fault: Fault) -> DialCause {
    match fault {
        #[cfg(feature = "tls")]
        Fault::Io(error) => super::tls::dial_cause(&error),
        fault => DialCause::Failed(fault.to_string()),
    }
}

/// The listener's side. Frames can be exchanged when it returns.
pub(super) async fn accept(
    reader: &mut FrameReader,
    writer: &mut FrameWriter,
    secret: Option<&Secret>,
    greet: impl FnOnce(&Hello) -> Result<Welcome, Refused>,
) -> Result<Hello, Turned> {
    let opening = reader.read().await?;
    if opening.kind != Kind::Hello {
        return Err(Fault::Malformed("a hello was due").into());
    }
    let (nonce, hello) = match decode_hello(&opening.body) {
        Ok(heard) => heard,
        Err(Unheard::Fault(fault)) => return Err(fault.into()),
        Err(Unheard::Version(dialler)) => {
            return turn_away(writer, Refused::WrongVersion { listener: VERSION, dialler }).await;
        }
    };
    match (secret, nonce) {
        (None, None) => {}
        (Some(secret), Some(theirs)) => {
            let nonce = draw_nonce();
            say(writer, Kind::Challenge, encode(&nonce)).await?;
            let transcript = Transcript::new(secret, &theirs, &nonce, &opening.body);
            let proof = reader.read().await?;
            if proof.kind != Kind::Proof {
                return Err(Fault::Malformed("a proof was due").into());
            }
            if transcript.verify(Side::Dialler, &proof.body).is_err() {
                return turn_away(writer, Refused::NotAuthenticated).await;
            }
            writer.push(&Frame::new(Kind::Proof, 0, transcript.prove(Side::Listener)));
            reader.set_seal(transcript.seal(Side::Dialler));
            writer.set_seal(transcript.seal(Side::Listener));
        }
        // Without the secret on this side too: the dialler believes that the connection is protected, and it would not be.
        (Some(_), None) | (None, Some(_)) => return turn_away(writer, Refused::NotAuthenticated).await,
    }
    match greet(&hello).and_then(|welcome| hello.check(&welcome).map(|()| welcome)) {
        Err(refused) => turn_away(writer, refused).await,
        Ok(welcome) => {
            say(writer, Kind::Welcome, encode(&welcome)).await?;
            reader.set_body_max(BODY_MAX_BYTES);
            Ok(hello)
        }
    }
}

async fn turn_away<T>(writer: &mut FrameWriter, refused: Refused) -> Result<T, Turned> {
    say(writer, Kind::Refused, encode(&refused)).await?;
    Err(Turned::Away(refused))
}

async fn say(writer: &mut FrameWriter, kind: Kind, body: Vec<u8>) -> Result<(), Fault> {
    writer.push(&Frame::new(kind, 0, body));
    writer.flush().await
}
