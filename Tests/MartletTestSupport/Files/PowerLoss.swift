import MartletTesting

/// The disk's state after a power loss: any changes can be missing, within the case's rule.
package enum PowerLoss: Sendable, CustomStringConvertible {
    /// All changes up to the given number, as after a kill.
    case after(Int)
    /// The directory's changes up to the given number without any data: files are empty.
    case withoutData(Int)
    /// The directory's changes up to the given number, with files of full length that contain only zeros.
    case zeros(Int)
    /// A random subset of the changes up to the given number, drawn with a seed. Data is lost page by page, and one in
    /// eight directory changes is lost.
    case any(Int, seed: UInt64)
    /// A random subset as in `any`, but without losing changes that were synced before.
    case unsynced(Int, seed: UInt64)

    /// The case and its number of changes, with the seed.
    package var description: String {
        switch self {
        case .after(let count): "all of \(count) changes"
        case .withoutData(let count): "\(count) changes without data"
        case .zeros(let count): "\(count) changes with zeros for data"
        case .any(let count, let seed): "some of \(count) changes, by \(seed)"
        case .unsynced(let count, let seed): "\(count) changes without some that were not synced, by \(seed)"
        }
    }

    /// The page size in bytes: data reaches the disk page by page.
    private static let page = 4096

    private struct Content {
        var bytes: [UInt8] = []

        mutating func extend(to byteCount: Int) {
            if bytes.count < byteCount { bytes += [UInt8](repeating: 0, count: byteCount - bytes.count) }
        }

        mutating func write(_ piece: ArraySlice<UInt8>, at offset: Int) {
            extend(to: offset + piece.count)
            bytes.replaceSubrange(offset..<offset + piece.count, with: piece)
        }

        mutating func cut(to byteCount: Int) {
            if bytes.count > byteCount { bytes.removeLast(bytes.count - byteCount) }
            extend(to: byteCount)
        }
    }

    /// The number of changes.
    private var count: Int {
        switch self {
        case .after(let count), .withoutData(let count), .zeros(let count), .any(let count, _),
            .unsynced(let count, _):
            count
        }
    }

    private var seed: UInt64 {
        switch self {
        case .any(_, let seed), .unsynced(_, let seed): seed
        case .after, .withoutData, .zeros: 0
        }
    }

    /// Returns the synced changes: the number for the directory and for each file.
    private func synced(_ changes: [RecordingFileSystem.Change]) -> (directory: Int, files: [Int: Int]) {
        guard case .unsynced = self else { return (0, [:]) }
        var directory = 0
        var files: [Int: Int] = [:]
        for (place, change) in changes.prefix(count).enumerated() {
            switch change {
            case .synced(let file): files[file] = place
            case .syncedDirectory: directory = place
            case .made, .wrote, .cut, .renamed, .removed: break
            }
        }
        return (directory, files)
    }

    /// Returns the files that remain, with their contents by name.
    package func files(after changes: [RecordingFileSystem.Change]) -> [String: [UInt8]] {
        var random = SeededGenerator(seed: seed)
        let synced = synced(changes)
        var contents: [Int: Content] = [:]
        // The file numbers by name.
        var names: [String: Int] = [:]
        for (place, change) in changes.prefix(count).enumerated() {
            switch change {
            case .made, .renamed, .removed:
                switch self {
                case .any, .unsynced: if place >= synced.directory, random.next() % 8 == 0 { continue }
                case .after, .withoutData, .zeros: break
                }
                PowerLoss.apply(change, to: &names)
            case .wrote(let file, let offset, let bytes):
                if place < synced.files[file] ?? 0 {
                    contents[file, default: Content()].write(bytes[...], at: offset)
                } else {
                    apply(bytes, at: offset, to: &contents[file, default: Content()], &random)
                }
            case .cut(let file, let byteCount):
                if case .withoutData = self { break }
                contents[file, default: Content()].cut(to: byteCount)
            case .synced, .syncedDirectory: break
            }
        }
        return names.mapValues { contents[$0]?.bytes ?? [] }
    }

    private static func apply(_ change: RecordingFileSystem.Change, to names: inout [String: Int]) {
        switch change {
        case .made(let name, let file): names[name] = file
        case .renamed(let name, let target):
            if let file = names.removeValue(forKey: name) { names[target] = file }
        case .removed(let name): names[name] = nil
        case .wrote, .cut, .synced, .syncedDirectory: break
        }
    }

    private func apply(
        _ bytes: [UInt8], at offset: Int, to content: inout Content, _ random: inout SeededGenerator
    ) {
        switch self {
        case .after: content.write(bytes[...], at: offset)
        case .withoutData: break
        case .zeros: content.extend(to: offset + bytes.count)
        case .any, .unsynced:
            // Some file systems store lengths with the directory, and others with the data.
            if random.next() % 2 == 0 { content.extend(to: offset + bytes.count) }
            for start in stride(from: 0, to: bytes.count, by: PowerLoss.page) where random.next() % 4 != 0 {
                content.write(bytes[start..<min(bytes.count, start + PowerLoss.page)], at: offset + start)
            }
        }
    }
}
