/// What a kept value was made of: a body that the response cache stores, as one kind of request gets it.
struct DecodedValueKey: Hashable, Sendable {
    /// The kind of request.
    let resource: DecodedResource
    /// The number of the stored body (``HTTPExchange/representation``).
    let representation: UInt64
}
