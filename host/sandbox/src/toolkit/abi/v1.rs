//! Imports and the three exports of `toolhost:toolkit@1.0.0`, resolved for a component.

use std::marker::PhantomData;

use wasmtime::{
    Result, Store,
    component::{
        Component, ComponentExportIndex, ComponentNamedList, HasSelf, Instance, InstancePre, Lift,
        Linker, Lower, TypedFunc, types::ComponentItem,
    },
};

use crate::{
    contract::v1::{
        blob, clock, http, log, random, state,
        types::{Context, Inbound, Polled, Received, ToolError},
        webhook,
    },
    toolkit::State,
};

/// Interface that every toolkit exports.
pub(crate) const ENTRY_INTERFACE: &str = "toolhost:toolkit/entry@1.0.0";
/// Name of the import, without its version, by which a guest verifies webhook requests.
const WEBHOOK_IMPORT_PREFIX: &str = "toolhost:toolkit/webhook@";

type ExecuteParams<'a> = (&'a str, &'a [u8], &'a Context);
type PollParams<'a> = (&'a str, &'a [u8], &'a [u8], &'a Context);
type ReceiveParams<'a> = (&'a str, &'a [u8], &'a Inbound, &'a Context);
type Returns<T> = (std::result::Result<T, ToolError>,);

/// Adds the imports of this version to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> Result<()> {
    http::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    log::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    clock::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    random::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    state::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    blob::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    webhook::add_to_linker::<_, HasSelf<State>>(linker, |state| state)
}

/// Result of a function that returned: its value or an error of the toolkit.
type Returned<T> = std::result::Result<T, ToolError>;

/// A component with its imports resolved and its exports found, ready to be instantiated.
pub(crate) struct Toolkit {
    pre: InstancePre<State>,
    execute: CheckedExport<ExecuteParams<'static>, Returns<Vec<u8>>>,
    poll: CheckedExport<PollParams<'static>, Returns<Polled>>,
    receive: CheckedExport<ReceiveParams<'static>, Returns<Received>>,
    /// True if the guest verifies webhook requests through the host, without seeing the secret.
    pub(crate) verifies_webhooks: bool,
}

impl Toolkit {
    /// Resolves imports and exports and checks their types.
    pub(crate) fn new(linker: &Linker<State>, component: &Component) -> Result<Self> {
        let pre = linker.instantiate_pre(component)?;
        let entry = component
            .get_export_index(None, ENTRY_INTERFACE)
            .ok_or_else(|| {
                wasmtime::format_err!("the component does not export `{ENTRY_INTERFACE}`")
            })?;
        Ok(Self {
            execute: CheckedExport::find(component, &entry, "execute")?,
            poll: CheckedExport::find(component, &entry, "poll")?,
            receive: CheckedExport::find(component, &entry, "receive")?,
            verifies_webhooks: component
                .component_type()
                .imports(component.engine())
                .any(|(name, _)| name.starts_with(WEBHOOK_IMPORT_PREFIX)),
            pre,
        })
    }

    pub(crate) async fn instantiate(&self, store: &mut Store<State>) -> Result<Instance> {
        self.pre.instantiate_async(store).await
    }

    pub(crate) fn execute<'a>(
        &self,
        store: &'a mut Store<State>,
        instance: &Instance,
        params: ExecuteParams<'a>,
    ) -> impl Future<Output = Result<Returned<Vec<u8>>>> + Send + use<'a> {
        let function = self.execute.function(store, instance);
        async move { Ok(function?.call_async(store, params).await?.0) }
    }

    pub(crate) fn poll<'a>(
        &self,
        store: &'a mut Store<State>,
        instance: &Instance,
        params: PollParams<'a>,
    ) -> impl Future<Output = Result<Returned<Polled>>> + Send + use<'a> {
        let function = self.poll.function(store, instance);
        async move { Ok(function?.call_async(store, params).await?.0) }
    }

    pub(crate) fn receive<'a>(
        &self,
        store: &'a mut Store<State>,
        instance: &Instance,
        params: ReceiveParams<'a>,
    ) -> impl Future<Output = Result<Returned<Received>>> + Send + use<'a> {
        let function = self.receive.function(store, instance);
        async move { Ok(function?.call_async(store, params).await?.0) }
    }
}

/// Function of the entry interface of one component, whose type was checked.
struct CheckedExport<P, R> {
    index: ComponentExportIndex,
    signature: PhantomData<(P, R)>,
}

impl<P, R> CheckedExport<P, R>
where
    P: ComponentNamedList + Lower,
    R: ComponentNamedList + Lift,
{
    /// Finds a function of the entry interface and checks its type, without an instance.
    fn find(component: &Component, entry: &ComponentExportIndex, name: &str) -> Result<Self> {
        let (item, index) = component.get_export(Some(entry), name).ok_or_else(|| {
            wasmtime::format_err!("`{ENTRY_INTERFACE}` does not have the function `{name}`")
        })?;
        let ComponentItem::ComponentFunc(function) = item else {
            wasmtime::bail!("`{name}` of `{ENTRY_INTERFACE}` is not a function");
        };
        function
            .typecheck::<P, R>(&component.component_type().instance_type())
            .map_err(|cause| {
                wasmtime::format_err!(
                    "`{name}` of `{ENTRY_INTERFACE}` has another type than the contract: {cause:#}"
                )
            })?;
        Ok(Self {
            index,
            signature: PhantomData,
        })
    }

    /// Returns the function of an instance. Fails if the instance is one of another component.
    fn function(&self, store: &mut Store<State>, instance: &Instance) -> Result<TypedFunc<P, R>> {
        instance.get_typed_func(store, self.index)
    }
}
