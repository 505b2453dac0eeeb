/// Fields as a HAR log lists them.
enum HARFields {
    /// A list of names and values.
    static func value(_ fields: [(name: String, value: String)]) -> HARValue {
        .list(fields.map { .members([("name", .text($0.name)), ("value", .text($0.value))]) })
    }
}
