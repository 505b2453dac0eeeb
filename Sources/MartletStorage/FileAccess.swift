import Glibc

/// Who may do what with a file, as far as its mode says.
package struct FileAccess: Hashable, Sendable {
    /// Whether others than the owner, the group among them, may read it.
    package let isReadableByOthers: Bool
    /// Whether others than the owner, the group among them, may write it.
    package let isWritableByOthers: Bool
    /// The bits of its mode that let others write it.
    private let writers: mode_t
    /// Whose it is.
    private let owner: uid_t
    /// Whether it belongs to the user that this process acts for; it asks the kernel, which most who look at a file need not.
    package var isOwnedByThisUser: Bool { owner == geteuid() }

    /// Whether it belongs to this user, and nobody else may write it but those whom this process's own mask lets write its new
    /// files.
    package var isOfThisUserAlone: Bool {
        isOwnedByThisUser && (writers == 0 || writers & FileAccess.mask == 0)
    }

    /// The mask of this process, as the kernel tells it (Linux 4.7 and later): `umask` itself can only be asked by changing it.
    private static var mask: mode_t {
        let files = LinuxFileSystem()
        guard let file = try? files.open("/proc/self/status", for: .reading),
            let bytes = try? files.readSome(file, limit: 4_096, at: 0)
        else { return S_IWOTH }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        let digits = lines.first { $0.hasPrefix("Umask:") }?.split { $0 == "\t" || $0 == " " }.last
        return digits.flatMap { mode_t($0, radix: 8) } ?? S_IWOTH
    }

    /// What a file's status says.
    init(mode: mode_t, owner: uid_t) {
        isReadableByOthers = mode & (S_IRGRP | S_IROTH) != 0
        isWritableByOthers = mode & (S_IWGRP | S_IWOTH) != 0
        writers = mode & (S_IWGRP | S_IWOTH)
        self.owner = owner
    }
}
