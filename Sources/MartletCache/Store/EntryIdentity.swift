import MartletStorage

/// Which body an entry's file names, read from its first bytes and not checked.
struct EntryIdentity: Equatable, Sendable {
    let generation: UInt64
    /// The generation where the body has a file of its own; `nil` where it has none.
    let bodyGeneration: UInt64?

    /// Reads an entry's file; `nil` where it cannot be read or is no entry.
    static func read(_ folder: CacheFolder, _ name: EntryName) -> EntryIdentity? {
        let count = EntryCodec.preambleByteCount + 17
        guard let file = try? folder.files.open(folder.path(of: .entry(name)), for: .reading),
            let bytes = try? folder.files.read(file, count: count, at: 0), bytes.count == count,
            (try? EntryCodec.metadataByteCount(bytes)) != nil
        else { return nil }
        var reader = RecordReader(bytes[EntryCodec.preambleByteCount...])
        guard let generation: UInt64 = try? reader.number("generation"),
            let _: UInt64 = try? reader.number("body length"), let isInline = try? reader.flag("inline")
        else { return nil }
        return EntryIdentity(generation: generation, bodyGeneration: isInline ? nil : generation)
    }
}
