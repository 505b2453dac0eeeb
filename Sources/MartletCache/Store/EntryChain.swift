/// Numbers in an order, newest first, with neighbours found at once.
struct EntryChain: Sendable {
    private struct Link {
        var newer: Int?
        var older: Int?
        var isMember = false
    }

    private var links: [Link] = []
    private(set) var newest: Int?
    private(set) var oldest: Int?

    /// Whether a number is in it.
    func contains(_ entry: Int) -> Bool {
        links.indices.contains(entry) && links[entry].isMember
    }

    /// The next newer than one that is in it.
    func newer(than entry: Int) -> Int? {
        contains(entry) ? links[entry].newer : nil
    }

    /// Adds a number that is not in it, as the newest; negative ones are none.
    mutating func insert(_ entry: Int) {
        guard entry >= 0, !contains(entry) else { return }
        while links.count <= entry { links.append(Link()) }
        links[entry] = Link(newer: nil, older: newest, isMember: true)
        if let newest { links[newest].newer = entry }
        newest = entry
        if oldest == nil { oldest = entry }
    }

    /// Removes a number, if it is in it.
    mutating func remove(_ entry: Int) {
        guard contains(entry) else { return }
        let link = links[entry]
        if let newer = link.newer { links[newer].older = link.older } else { newest = link.older }
        if let older = link.older { links[older].newer = link.newer } else { oldest = link.newer }
        links[entry] = Link()
    }
}
