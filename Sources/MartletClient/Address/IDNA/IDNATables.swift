/// The Unicode data behind internationalised host names, decoded on first use and kept.
///
/// Only hosts that are not plain ASCII ask for it. The generated files hold the data as text: it compiles in
/// no time and costs nothing until then.
enum IDNATables {
    /// What UTS #46 says of each code point.
    static let mappingTable = MappingTable(packed: mapping)
    /// Primary composites by their two parts, and the reverse.
    static let compositionTable = CompositionTable(packed: composition)
    /// Canonical combining classes; 9 is virama.
    static let combiningClassTable = CodePointTable(packed: combiningClasses)
    /// 1 for marks.
    static let markTable = CodePointTable(packed: marks)
    /// Raw values of ``JoinerRule/JoiningType``.
    static let joiningTypeTable = CodePointTable(packed: joiningTypes)
    /// Raw values of ``BidiRule/BidiClass``.
    static let bidiClassTable = CodePointTable(packed: bidiClasses)
}
