/// What a measurement came to; it is printed as one line of JSON.
struct Outcome: Sendable {
    /// Things done within the measured time.
    var count = 0
    /// Of those, how many were on a resumed TLS session, as the server says.
    var resumed = 0
    /// Things done in all, also while warming up.
    var total = 0
    /// Bytes of bodies.
    var byteCount = 0
    /// How long the measured part took.
    var seconds = 0.0
    /// What of all processors it used.
    var processorSeconds = 0.0
    /// How long each thing took, where that was looked at.
    var histogram = Histogram()

    var json: String {
        var text = "{\"count\":\(count),\"resumed\":\(resumed),\"total\":\(total),\"bytes\":\(byteCount)"
        text += ",\"seconds\":\(seconds),\"cpu\":\(processorSeconds)"
        if !histogram.counts.isEmpty {
            let buckets = histogram.counts.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }
            text += ",\"histogram\":{\(buckets.joined(separator: ","))}"
        }
        return text + "}"
    }
}
