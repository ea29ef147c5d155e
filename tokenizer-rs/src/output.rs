// SPDX-License-Identifier: Apache-2.0
//! The caller's buffer of ids, as it fills.

use crate::cache::Value;
use crate::token_id::TokenId;
use std::mem::MaybeUninit;

/// The output buffer is full.
pub struct Full;

/// A buffer and how many ids it holds.
pub struct Output<'buffer, I> {
    buffer: &'buffer mut [MaybeUninit<I>],
    count: usize,
}

impl<'buffer, I: TokenId> Output<'buffer, I> {
    /// An empty one.
    pub fn new(buffer: &'buffer mut [MaybeUninit<I>]) -> Self {
        Self { buffer, count: 0 }
    }

    /// Ids written.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Adds one id.
    #[inline(always)]
    pub fn push(&mut self, id: I) -> Result<(), Full> {
        self.buffer.get_mut(self.count).ok_or(Full)?.write(id);
        self.count += 1;
        Ok(())
    }

    /// Adds ids.
    pub fn extend(&mut self, ids: &[u32]) -> Result<(), Full> {
        let places = self.buffer.get_mut(self.count..self.count + ids.len()).ok_or(Full)?;
        for (place, &id) in places.iter_mut().zip(ids) {
            place.write(I::narrow(id));
        }
        self.count += ids.len();
        Ok(())
    }

    /// Adds the ids of a cache entry; returns how many they are. As many places are written as the largest entry fills:
    /// a copy of fixed size.
    #[inline(always)]
    pub fn push_value(&mut self, value: Value) -> Result<usize, Full> {
        let count = I::count(value);
        let places = self.buffer.get_mut(self.count..self.count + 8);
        if let Some(places) = places.and_then(|places| places.try_into().ok()) {
            I::unpack(value, places);
            self.count += count;
            return Ok(count);
        }
        let mut places = [MaybeUninit::new(I::default()); 8];
        I::unpack(value, &mut places);
        self.push_places(&places[..count])?;
        Ok(count)
    }

    /// Whether that many ids and the places behind them that [`Output::push_value_unchecked`] fills have room.
    #[inline(always)]
    pub fn has_room(&self, ids: usize) -> bool {
        self.buffer.len() - self.count >= ids + 8
    }

    /// As [`Output::push_value`].
    ///
    /// # Safety
    /// There is room for 8 ids.
    #[inline(always)]
    pub unsafe fn push_value_unchecked(&mut self, value: Value) -> usize {
        debug_assert!(self.has_room(0));
        // SAFETY: by the contract of this function.
        let places = unsafe { &mut *self.buffer.as_mut_ptr().add(self.count).cast() };
        I::unpack(value, places);
        let count = I::count(value);
        self.count += count;
        count
    }

    /// Adds the ids of a long entry, the last of which is their count.
    #[inline(always)]
    pub fn push_block(&mut self, block: &I::Block) -> Result<(), Full> {
        let ids = block.as_ref();
        let count = ids[ids.len() - 1].index();
        let Some(places) = self.buffer.get_mut(self.count..self.count + ids.len()) else {
            for &id in &ids[..count] {
                self.push(id)?;
            }
            return Ok(());
        };
        for (place, &id) in places.iter_mut().zip(ids) {
            place.write(id);
        }
        self.count += count;
        Ok(())
    }

    #[cold]
    fn push_places(&mut self, places: &[MaybeUninit<I>]) -> Result<(), Full> {
        let end = self.count + places.len();
        self.buffer
            .get_mut(self.count..end)
            .ok_or(Full)?
            .copy_from_slice(places);
        self.count = end;
        Ok(())
    }
}
