//! New communicators out of one, as `ncclCommSplit` divides it.

use std::time::{Duration, Instant};

use super::bootstrap::{Bootstrap, Options};
use super::error::CommError;
use super::id::UniqueId;
use crate::types::Rank;

/// The group a rank ends up in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// This rank's number in it.
    pub rank: Rank,
    /// Old ranks by new rank.
    pub members: Vec<Rank>,
}

/// Ranks of one colour form a group, ordered by key, then old rank. No colour, no group.
pub fn group(wishes: &[(Option<u32>, i32)], me: Rank) -> Option<Group> {
    let mine = wishes[me.index()].0?;
    let mut members: Vec<_> =
        (0..wishes.len() as u32).map(Rank).filter(|r| wishes[r.index()].0 == Some(mine)).collect();
    members.sort_by_key(|r| (wishes[r.index()].1, *r));
    let at = members.iter().position(|r| *r == me)?;
    Some(Group { rank: Rank(at as u32), members })
}

impl Bootstrap {
    /// Divides this communicator; every rank calls it. Each group's new rank 0 makes an id at the address it has here and becomes the
    /// home of the group's root. This bootstrap stays as it is.
    ///
    /// # Errors
    /// As [`Bootstrap::allgather`] and [`Bootstrap::connect`].
    pub fn split(
        &self,
        color: Option<u32>,
        key: i32,
        deadline: Duration,
    ) -> Result<Option<Bootstrap>, CommError> {
        let until = Instant::now() + deadline;
        let left = || until.saturating_duration_since(Instant::now());
        let wishes = self.allgather(&encode(color, key), left())?;
        let wishes = wishes.iter().map(|wish| decode(wish)).collect::<Result<Vec<_>, _>>()?;
        let group = group(&wishes, self.rank());
        // A rank that fails to make an id must still take part in the exchange, or the other groups would wait for it.
        let made = match &group {
            Some(group) if group.rank == Rank(0) => Some(UniqueId::create_at(self.local())),
            _ => None,
        };
        let bytes = match &made {
            Some(Ok(id)) => id.to_bytes().to_vec(),
            _ => vec![],
        };
        let ids = self.allgather(&bytes, left())?;
        let Some(group) = group else { return Ok(None) };
        made.transpose()?;
        let home = group.members[0];
        let id = <[u8; UniqueId::BYTES]>::try_from(ids[home.index()].as_slice()).map_err(|_| {
            CommError::Remote {
                rank: home,
                why: "it could not make the id of the group that splits off".into(),
            }
        })?;
        let options = Options { deadline: left(), ..self.options() };
        let new = Bootstrap::connect_with(
            &UniqueId::from_bytes(id)?,
            group.rank.0,
            group.members.len() as u32,
            options,
        )?;
        Ok(Some(new))
    }
}

fn encode(color: Option<u32>, key: i32) -> Vec<u8> {
    let mut out = vec![u8::from(color.is_some())];
    out.extend(color.unwrap_or(0).to_le_bytes());
    out.extend(key.to_le_bytes());
    out
}

fn decode(bytes: &[u8]) -> Result<(Option<u32>, i32), CommError> {
    let [some, c0, c1, c2, c3, k0, k1, k2, k3] = *bytes else {
        return Err(CommError::InvalidUsage(format!(
            "a rank answered split with {} bytes instead of a colour and a key; does every rank call split?",
            bytes.len()
        )));
    };
    let color = (some != 0).then_some(u32::from_le_bytes([c0, c1, c2, c3]));
    Ok((color, i32::from_le_bytes([k0, k1, k2, k3])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_ordered_by_key_then_old_rank() {
        let wishes = [(Some(1), 5), (Some(2), 0), (Some(1), -3), (None, 0), (Some(1), 5)];
        let got: Vec<_> = (0..5).map(|r| group(&wishes, Rank(r))).collect();
        let members = vec![Rank(2), Rank(0), Rank(4)];
        assert_eq!(got[2], Some(Group { rank: Rank(0), members: members.clone() }));
        assert_eq!(got[4], Some(Group { rank: Rank(2), members }));
        assert_eq!(got[1], Some(Group { rank: Rank(0), members: vec![Rank(1)] }));
        assert_eq!(got[3], None);
    }

    #[test]
    fn wishes_survive_the_wire() {
        for wish in [(None, -1), (Some(0), i32::MIN), (Some(u32::MAX), 7)] {
            assert_eq!(decode(&encode(wish.0, wish.1)).unwrap(), wish);
        }
    }
}
