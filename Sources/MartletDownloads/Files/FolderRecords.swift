package import MartletStorage
package import MartletTransport
import Synchronization

/// Which records lie in folders, so that many downloads into one folder do not each list all that is in it.
///
/// A list is good for a second. What this process writes is known at once; a record that another process leaves may be missed
/// for that long, and its download then begins anew.
package final class FolderRecords: Sendable {
    private struct List {
        var names: [String]
        var time: MonotonicTime
    }

    private struct State {
        /// Behind the folders' paths.
        var lists: [String: List] = [:]
        /// How often records were written.
        var changeCount: UInt64 = 0
    }

    /// Of all downloads of this process.
    package static let shared = FolderRecords()
    /// For how long a list is good.
    package static let lifetime = Duration.seconds(1)

    /// Guards the above: workers that list and write, and tasks that look.
    private let state = Mutex(State())

    /// None are known.
    package init() {}

    /// The names of the records in a folder, sorted, if they are known; the folder is the process's own where it is empty.
    package func names(known folder: String, now: MonotonicTime = .now()) -> [String]? {
        state.withLock { state in
            guard let list = state.lists[folder], now.since(list.time) < FolderRecords.lifetime else {
                return nil
            }
            return list.names
        }
    }

    /// The names of the records in a folder, sorted. It is listed where they are not known, which blocks.
    package func names(
        in folder: String, _ files: any FileSystem, now: MonotonicTime = .now()
    ) throws(StorageError) -> [String] {
        if let names = names(known: folder, now: now) { return names }
        let changeCount = state.withLock { $0.changeCount }
        let names = try files.names(inFolder: folder.isEmpty ? "." : folder)
            .filter { $0.hasSuffix(PartNames.recordSuffix) }.sorted()
        state.withLock { state in
            // What was written while it was listed may be missing.
            guard state.changeCount == changeCount else { return }
            state.lists = state.lists.filter { now.since($0.value.time) < FolderRecords.lifetime }
            state.lists[folder] = List(names: names, time: now)
        }
        return names
    }

    /// A record was written in a folder: it has to be listed again.
    package func forget(_ folder: String) {
        state.withLock { state in
            state.changeCount += 1
            state.lists[folder] = nil
        }
    }
}
