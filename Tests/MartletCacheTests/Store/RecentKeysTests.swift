import Testing

@testable import MartletCache

@Suite("Values of recent keys")
struct RecentKeysTests {
    private typealias Keys = RecentKeys<Int, String>

    /// The full table with the keys from 0, in this order.
    private static var full: Keys {
        var keys = Keys()
        for key in 0..<Keys.defaultLimit { keys.update("old", for: key) }
        return keys
    }

    // An earlier version removed the key that was added first, even if it had just been set again. The cache then used
    // responses whose URL had been invalidated a moment before.
    @Test("A key that is set again is removed last", arguments: [0, 1, Keys.defaultLimit / 2, Keys.defaultLimit - 1])
    func renewed(key: Int) {
        var keys = Self.full
        #expect(keys.update("new", for: key).isNew == false)
        for other in 0..<Keys.defaultLimit - 1 { keys.update("other", for: -1 - other) }
        #expect(keys[key] == "new")
        #expect((0..<Keys.defaultLimit).allSatisfy { $0 == key || keys[$0] == nil })
        #expect(keys.update("other", for: Keys.defaultLimit).isNew == true)
        #expect(keys[key] == nil)
    }

    @Test("The key that was set least recently is removed for a new one, and a known key removes none")
    func order() {
        var keys = Self.full
        for key in [1, 0] { keys.update("new", for: key) }
        #expect((0..<Keys.defaultLimit).allSatisfy { keys[$0] != nil })
        for (added, removed) in [(-1, 2), (-2, 3), (2, 4)] {
            #expect(keys.update("other", for: added).removed == "old")
            #expect(keys[removed] == nil && keys[added] == "other")
        }
        #expect(keys[0] == "new" && keys[1] == "new")
    }
}
