/// The options of the command line.
struct SoakOptions: Sendable {
    /// The name of the scenario.
    var name: String
    /// The duration of a timed scenario; 60 minutes by default.
    var minutes = 60.0
    /// The number of requests of a counted scenario; `nil` for the scenario's default.
    var count: Int?
    /// The seed of the random numbers; random by default.
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
