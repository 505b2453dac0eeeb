import Synchronization

extension ResponseStore {
    /// Removes one variant from both tiers, unless another has taken its place. It blocks on files.
    package func remove(_ response: StoredResponse) {
        remove(response.head.key, representation: response.representation)
    }

    /// Removes the response with a body from both tiers, where it is still stored. It blocks on files.
    func remove(_ key: CacheKey, representation: UInt64) {
        changing.withLock { changing in
            defer { noteChange(key.url) }
            changing.leaving.removeAll { $0.representation == representation }
            if let held = memory.entry(of: key, representation: representation) { memory.remove(held.entry) }
            disk?.remove(key, generation: representation)
        }
    }

    /// Makes what is stored for a key's URL out of date (RFC 9111 §4.4): what the key and the URL's common key have is removed,
    /// and what was asked for before is not stored behind it. It blocks on files.
    /// - Parameter others: the present, where what other keys of the URL have is not to be found any more, either: nobody knows
    ///   which there are. `nil` leaves them.
    package func invalidate(_ key: CacheKey, others: WallTime? = nil) {
        // First of all, so that whoever is storing sees it at the last moment, or is done before anything is removed.
        ledger.withLock { $0.invalidate(key.url) }
        if let others { noteOutdated(key.url, at: others) }
        let keys: Set<CacheKey> = [key, CacheKey(url: key.url)]
        changing.withLock { changing in
            defer { noteChange(key.url) }
            changing.leaving.removeAll { entry in
                guard keys.contains(entry.head.key) else { return false }
                ends.note(entry.head.key, entry.representation)
                return true
            }
            for key in keys {
                memory.remove(key)
                disk?.remove(key)
            }
        }
    }

    /// Makes what was asked for of a URL up to now be found no longer, whosever it is. It takes no time.
    package func noteOutdated(_ url: String, at now: WallTime) {
        outdated.withLock { $0.note(url, at: now) }
    }

    /// Removes what is stored of a URL from both tiers, whosever it is. It blocks on files, and reads the head of each entry on
    /// disk, since nothing else tells of which URL it is.
    package func removeAll(of url: String) {
        var keys = Set(
            changing.withLock { changing in
                changing.leaving.lazy.map(\.head.key).filter { $0.url == url } + memory.keys(of: url)
            })
        keys.insert(CacheKey(url: url))
        for key in keys { invalidate(key) }
        guard let disk, let names = try? disk.entryNames() else { return }
        for name in names {
            if case .whole(let reader) = disk.look(at: name), reader.head.key.url == url {
                remove(reader.head.key, representation: reader.entry.generation)
            }
        }
    }

    /// Removes everything from both tiers, also what is not on disk yet. It blocks on files.
    package func removeAll() {
        ledger.withLock { $0.invalidateAll() }
        changing.withLock { changing in
            defer { changes.withLock { $0.invalidateAll() } }
            for entry in changing.leaving { ends.note(entry.head.key, entry.representation) }
            changing.leaving = []
            memory.removeAll()
            disk?.removeAll()
            outdated.withLock { $0.removeAll() }
        }
    }
}
