//! A fault on purpose: a receiver that frees nothing.

use super::Port;
use crate::exec::ExecError;
use crate::exec::cuda::driver::Memory;
use crate::exec::cuda::foreign::Visit;
use crate::exec::cuda::image;
use crate::exec::cuda::phases::Role;

impl Port {
    /// From the next launch on this rank's receivers announce the slots they free where no sender looks: peers that send to it stop when
    /// the slots are used up. Launches for all ranks of a process have no slots and go on.
    pub fn starve_senders(&mut self) -> Result<(), ExecError> {
        if self.sink.is_some() {
            return Ok(());
        }
        let _visit = Visit::begin(&self.device)?;
        let sink = Memory::zeroed(&self.device, 8)?;
        let nowhere = sink.address().0;
        for endpoint in self.endpoints.values_mut().flatten().flatten() {
            if endpoint.role == image::role(Role::Receiver) {
                endpoint.mine = nowhere;
            }
        }
        // Programs on the device hold the true addresses.
        self.ready.clear();
        self.sink = Some(sink);
        Ok(())
    }
}
