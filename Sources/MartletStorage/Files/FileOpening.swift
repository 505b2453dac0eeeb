/// What a file is opened for. A symbolic link in the last place is followed by none of them.
package enum FileOpening: Sendable {
    /// For reading what is there. A pipe in its place is opened at once and does not hang.
    case reading
    /// For reading and writing a file that must not be there yet, and is its owner's alone (0600).
    case creating
    /// For reading and writing a file that is made, its owner's alone, where it is missing.
    case updating
    /// As ``updating``, but a file that is made is for whom the process's mask lets read it (0666).
    case sharing
    /// As ``creating``, but the file is for whom the process's mask lets read it (0666).
    case creatingShared
}
