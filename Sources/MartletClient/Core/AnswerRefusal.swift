/// A validator's word against an answer that came whole, on its way out of a call.
///
/// It is no ``HTTPError``, so that nobody on the way takes the refusal for a failure that another try might mend: what can be
/// tried again has been, when validators are asked.
struct AnswerRefusal: Error {
    /// What the validator threw, which is what the call throws.
    let reason: any Error

    /// What a call throws for an error that comes out of it.
    static func reason(of error: any Error) -> any Error {
        (error as? AnswerRefusal)?.reason ?? error
    }
}
