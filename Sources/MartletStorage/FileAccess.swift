import Glibc

/// Who may do what with a file, as far as its mode says.
package struct FileAccess: Hashable, Sendable {
    /// Whether others than the owner, the group among them, may read it.
    package let isReadableByOthers: Bool
    /// Whether others than the owner, the group among them, may write it.
    package let isWritableByOthers: Bool
    /// Whose it is.
    private let owner: uid_t
    /// Whether it belongs to the user that this process acts for; it asks the kernel, which most who look at a file need not.
    package var isOwnedByThisUser: Bool { owner == geteuid() }

    /// What a file's status says.
    init(mode: mode_t, owner: uid_t) {
        isReadableByOthers = mode & (S_IRGRP | S_IROTH) != 0
        isWritableByOthers = mode & (S_IWGRP | S_IWOTH) != 0
        self.owner = owner
    }
}
