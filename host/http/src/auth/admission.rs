//! Admission of requests: permissions, addresses, and the limits on rates and concurrency.

use std::{net::IpAddr, sync::Arc};

use app::{
    Error,
    projects::{Holder, SharedProject, permissions::Access},
};

use crate::{
    ApiResult, CURRENT_REQUEST, Server, context::operation, errors, limiter::Caller,
    operation::Permission, permits,
};

/// Checks that the permissions of a key cover those of an operation.
pub fn may(holder: &Holder, permission: Permission) -> Result<(), Error> {
    let Some(scopes) = &holder.rights.scopes else {
        return Ok(());
    };
    match permission {
        Permission::AnyKey => Ok(()),
        Permission::OneOf(areas, access) if scopes.allow(areas, access) => Ok(()),
        Permission::OneOf(areas, access) => {
            let access = match access {
                Access::Read => "read",
                _ => "write",
            };
            let areas = areas.iter().map(|area| area.into_str());
            let areas = areas.collect::<Vec<_>>().join(" or ");
            Err(errors::key_permission(access, &areas))
        }
        Permission::Unrestricted => Err(errors::key_restricted()),
    }
}

/// Admits a request with a valid key once: checks the address that it comes from and counts it
/// against the rate limits.
pub fn admit(server: &Server, holder: &Holder, project: Option<&Arc<str>>) -> ApiResult<()> {
    CURRENT_REQUEST.with(|context| {
        if context.owner.get().is_some() {
            return Ok(());
        }
        if !holder.rights.admit(context.peer) {
            return Err(errors::key_address().into());
        }
        holder.record_use(server.app.clock.now());
        let counted = server.limiter.rates.count(holder, project);
        *context.allowance.lock() = Some(counted.allowance);
        if let Some(refused) = counted.refused {
            return Err(refused.into());
        }
        match project {
            Some(project) => context.set_owner(&server.app.shares, project),
            // It gets no share of the processors: its rare requests would halve that of the
            // projects.
            None => context.set_organization(holder.organization().as_str()),
        }
        Ok(())
    })
}

/// Admits a request of the holder of a key to a project: checks the permission of its operation, and
/// counts it against the limits.
pub async fn admit_to_project(
    server: &Server,
    holder: &Holder,
    project: &SharedProject,
) -> ApiResult<()> {
    // A refused request counts too.
    admit(server, holder, Some(&project.tenant))?;
    may(holder, operation().permission)?;
    acquire(server, project, None).await
}

/// Admits a request to a public address of a project, and counts it against the rate limits.
pub async fn admit_without_key(server: &Server, project: &SharedProject) -> ApiResult<()> {
    let address = CURRENT_REQUEST.with(|context| context.peer);
    let counted = server.limiter.rates.count_without_key(project, address);
    CURRENT_REQUEST.with(|context| {
        *context.allowance.lock() = Some(counted.allowance);
        context.set_owner(&server.app.shares, &project.tenant);
    });
    if let Some(refused) = counted.refused {
        return Err(refused.into());
    }
    acquire(server, project, Some(address)).await
}

/// Acquires a concurrency permit of the project, and continues on the threads for the project.
async fn acquire(
    server: &Server,
    project: &SharedProject,
    stranger: Option<IpAddr>,
) -> ApiResult<()> {
    let tenant = project.tenant.clone();
    permits::acquire_for_project(&server.limiter, Caller { tenant, stranger }).await?;
    if let Some(task) = CURRENT_REQUEST.with(|context| context.task.clone()) {
        server.app.shares.settle(&task).await;
    }
    Ok(())
}
