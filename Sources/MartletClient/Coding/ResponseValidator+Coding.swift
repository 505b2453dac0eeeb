extension ResponseValidator {
    /// Keeps settings from being written without their validator: without it answers would be taken that are refused now.
    /// - Throws: `EncodingError.invalidValue`, always.
    func refuseEncoding(to encoder: any Encoder) throws {
        throw EncodingError.invalidValue(
            self,
            EncodingError.Context(
                codingPath: encoder.codingPath, debugDescription: "a validator cannot be encoded"))
    }
}
