/// The outcome of a measurement, which is printed as one line of JSON.
struct Outcome: Sendable {
    /// The number of operations within the measured time.
    var count = 0
    /// The number of these operations on a resumed TLS session, as reported by the server.
    var resumed = 0
    /// The number of all operations, including the warm-up.
    var total = 0
    /// The number of body bytes.
    var byteCount = 0
    /// The duration of the measured part in seconds.
    var seconds = 0.0
    /// The processor time of all processors in seconds.
    var processorSeconds = 0.0
    /// The durations of the operations, if they were measured.
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
