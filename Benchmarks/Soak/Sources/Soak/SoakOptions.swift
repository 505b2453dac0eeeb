/// What the command line asks for.
struct SoakOptions: Sendable {
    /// The scenario.
    var name: String
    /// How long a scenario that is told by the clock runs; 60 minutes by default.
    var minutes = 60.0
    /// How many requests a scenario that is told by their number makes; `nil` for its own.
    var count: Int?
    /// Where its random numbers begin; drawn by default.
    var seed = UInt64.random(in: 1...999_999_999)

    init?(_ words: [String]) {
        guard let name = words.first else { return nil }
        self.name = name
        var rest = words.dropFirst()
        while let word = rest.popFirst() {
            guard let value = rest.popFirst() else { return nil }
            switch word {
            case "--minutes":
                guard let minutes = Double(value), minutes > 0 else { return nil }
                self.minutes = minutes
            case "--count":
                guard let count = Int(value), count > 0 else { return nil }
                self.count = count
            case "--seed":
                guard let seed = UInt64(value) else { return nil }
                self.seed = seed
            default: return nil
            }
        }
    }
}
