//! Import that reads and writes the files of a call.

use wasmtime::Result;

use crate::{
    contract::v1::blob::{Error, Host, Info},
    toolkit::State,
};

impl Host for State {
    fn stat(&mut self, id: String) -> Result<std::result::Result<Info, Error>> {
        self.count_host_call()?;
        Ok(self.files.info(&id))
    }

    fn read(
        &mut self,
        id: String,
        offset: u64,
        length: u32,
    ) -> Result<std::result::Result<Vec<u8>, Error>> {
        self.count_host_call()?;
        Ok(self.files.read(&id, offset, length))
    }

    fn create(
        &mut self,
        name: String,
        media_type: String,
    ) -> Result<std::result::Result<String, Error>> {
        self.count_host_call()?;
        Ok(self.files.create(&name, &media_type))
    }

    fn append(&mut self, id: String, bytes: Vec<u8>) -> Result<std::result::Result<u64, Error>> {
        self.count_host_call()?;
        Ok(self.files.append(&id, &bytes))
    }
}
