"""The words that prompts are made of, sorted by what a sentence needs. Every noun takes a plain `s` in the plural."""

# ruff: noqa: SIM905 - lists of words read best as text

NOUNS: tuple[str, ...] = tuple(
    """
    acorn actor anchor angle animal answer apple apron archer arrow artist author badge baker ballad banner barge barrel
    basin basket beacon beam bean bear bed beetle bell belt bird blanket blossom boat bolt book boot border bottle bowl
    bracelet brick bridge broom brother bucket builder bullet button cabin cable camel camera candle canoe
    captain card carpet carriage cart castle cat cave cellar chain chair chapel chapter chart cheese chimney circle
    clerk cloak clock cloud clover coat coin collar colour column comb cook copper cord corner cottage counter
    cousin cradle crate creek crop crow crown cup curtain cushion dam dancer daughter desk diamond dinner doctor dog
    donkey door dove drawer driver drum duck eagle ear egg elbow engine envelope evening farm farmer father feather fence
    ferret fiddle field finger flag flame flask flower flute forest fork fountain frame friend frog fruit furnace
    garden gardener garment gate giant girl glove goat goblet governor grain grape guard guest guitar hammer hand harbour
    harp hat hawk hedge helmet hen hill hinge hook horn horse hospital hotel house hunter inn island jacket jar
    jewel judge jug kettle key king kitchen kite kitten ladder lake lamb lamp lantern lark lawn lawyer leaflet lemon
    lesson letter lever lion lizard lock log loom mallet manor map market mason mast meadow medal melon mentor merchant
    meteor mill miller minute mirror mole monument moon morning motor mountain mug musician napkin needle neighbour nest
    net notebook number nurse oar object ocean office officer olive onion orchard order organ otter oven owl oyster packet
    page paint painter pair palace panel paper parade parcel parent parlour partner passage pasture path pattern pavement
    peacock pear pebble pen pencil pepper picture pigeon pillow pilot pine pipe pirate pitcher planet plank plant plate
    plough plum pocket poem poet pond porter portrait potter powder prairie prince printer prison problem puddle pump
    puppet quarrel queen question quilt rabbit raft railway ram raven razor record reed report ribbon ridge rifle ring
    river road robin rock roof room root rope rug ruler saddle sailor salmon school screen scroll seal season seed
    servant shadow shed sheet shell shepherd shield ship shirt shoe shop shore shoulder shovel signal singer sister
    skirt sledge sleeve smith snail soldier song spade sparrow spider spoon spring square squirrel stable staircase stamp
    star statue steamer stone stool storm stove stranger stream street student summer sun swallow swan sword table
    tailor tanker teacher temple tent theatre thimble thread throne ticket tiger timber tower town track trader trail
    train traveller tray treasure tree trumpet trunk tunnel turnip turtle uncle valley vase veil vessel village violin
    visitor voyage wagon waiter wall walnut warden water weaver wedding well whale wheel whistle widow willow window
    wing winter wizard worker workshop writer yard zebra
    """.split()
)

ADJECTIVES: tuple[str, ...] = tuple(
    """
    ancient angry bare bent bitter black blank blue bold brave brief bright broad broken brown calm careful careless cheap
    cheerful clean clear clever cold common cool crooked curious damp dark dear deep distant double dry dull dusty eager
    early eastern empty even faded faint fair faithful false famous fancy fast fat final fine firm first flat foreign
    fragile free fresh friendly full gentle glad golden good grand grateful great green grey half handsome happy hard harsh
    heavy hidden high hollow honest hot huge humble hungry idle iron kind large last late lazy lean light little lively
    local lonely long loose loud lovely low lucky mean mild modern muddy narrow neat new noble noisy northern odd old open
    orange ordinary pale patient plain pleasant polished poor precious private proud public purple quick quiet rare raw
    ready red restless rich ripe rough round royal rusty sad safe salty scarce second secret serious shallow sharp short
    shy silent silver simple single sleepy slender slim slow small smooth soft solemn solid sour southern spare steady
    steep stiff still straight strange strict strong stubborn sudden sunny sweet swift tall tame tender thick thin third
    thirsty tidy tight tiny tired tough true upper useful vain vast violet warm weak weary western wet white whole wide
    wild wise wooden yellow young
    """.split()
)

VERBS: tuple[str, ...] = tuple(
    """
    admired answered asked avoided balanced blamed borrowed bought brought brushed built buried called carried carved
    caught chased checked chose cleaned climbed closed coloured counted covered crossed cut delivered described designed
    discovered dragged drew dropped emptied entered examined exchanged feared fed fetched filled finished followed forgot
    found gathered greeted guarded guided heard heated helped hid hired held ignored inspected invited joined kept knew
    labelled left lent lifted liked loaded locked lost loved made marked measured mended met missed moved named needed
    noticed offered opened ordered owned packed painted passed photographed picked placed planted praised prepared printed
    promised protected pulled pushed raised reached read received recognised recorded refused remembered repaired replaced
    returned rescued rubbed saved saw searched selected sent served sewed shared showed sketched sold spotted stacked
    steered stole stored studied surprised swept tasted taught thanked threw tied told touched traced trusted turned
    understood unlocked unpacked used valued visited wanted warned washed watched weighed welcomed wiped wore wrapped wrote
    """.split()
)

ADVERBS: tuple[str, ...] = tuple(
    """
    again almost already badly barely boldly briefly calmly carefully certainly cheaply clearly closely easily eagerly
    early firmly gently gladly happily hardly heavily honestly instantly kindly lately lightly loudly neatly nearly never
    nicely often once openly patiently plainly politely proudly quickly quietly rarely really roughly safely secretly
    seldom sharply silently simply slowly smoothly softly soon steadily suddenly surely swiftly twice usually warmly wisely
    """.split()
)

PLACES: tuple[str, ...] = tuple(
    """
    above across after against along around before behind below beside between beyond by down inside into near off onto
    opposite outside over past round through toward towards under until up upon with within without
    """.split()
)

NAMES: tuple[str, ...] = tuple(
    """
    Ada Albert Alice Amos Anna Arthur Basil Beatrix Ben Bertha Bruno Cara Cecil Clara Cyril Daisy Daniel Dora Edgar Edith
    Ella Emil Esther Felix Flora Frank George Grace Greta Hanna Harold Hazel Helen Henry Hugo Ida Irene Iris Isaac Ivan
    Jacob Jane Joan Jonas Julia Karl Kate Laura Leo Lewis Lily Louis Lucy Lydia Mabel Marcus Maria Martin Max Mina Miriam
    Nadia Nell Nina Noah Nora Olga Oliver Oscar Otto Paula Peter Philip Ralph Rosa Ruth Samuel Sarah Simon Sofia Stella
    Susan Sylvia Theo Thomas Tilda Tobias Ursula Vera Victor Viola Walter Wanda Wilma Xenia Yvonne
    """.split()
)

STATIONS: tuple[str, ...] = ("Kestrel", "Heron", "Osprey", "Plover", "Curlew", "Dunlin", "Gannet", "Merlin")
