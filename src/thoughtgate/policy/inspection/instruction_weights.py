"""The weights of features, of definitions and contents; written by ``tools/fit_instruction_weights.py``.

Each line has a weight and the features that have it, two spaces between them.
"""

from typing import Final

DEFINITIONS: Final = """
-0.211  #first #model
-0.186  #first #talk
-0.177  #bias
-0.166  #care
-0.165  #first #secret
-0.162  #in text #open
-0.149  valu
-0.148  e g  the server
-0.146  x0 .. 0
-0.142  such as
-0.141  an
-0.137  {
-0.134  do not  personal data
-0.133  #in parameter #trigger
-0.132  #known thing
-0.129  by .. user
-0.128  #use #user  page
-0.127  or  unless
-0.126  ^ use
-0.125  : "  pass
-0.123  #in parameter  #known secret
-0.121  #form #in text  #identifier #in text  get the
-0.12  #first #give  }
-0.119  #in text #known secret  include
-0.118  "  #about #first
-0.117  #obey #you  ^ alway  permission .. the  step
-0.116  #about
-0.112  com  example :
-0.111  #care #secret  http .. com  write
-0.11  #in parameter #returns
-0.109  #first #harm
-0.108  ^  ^ pass  e mail
-0.107  header
-0.106  #care #in text  #in text #no  : 0  add  before you
-0.104  #in text #known thing  plain  such
-0.103  cannot  password  prefer  sign  use
-0.102  ^ system  del  other tool  tell .. user
-0.101  #their #trigger
-0.1  #open #user  ^ prefer
-0.099  action  width
-0.098  ^ show
-0.097  #known model  against  call this
-0.096  #form #telling prior  chang  com /  cursor  not
-0.095  #before #in text  a note  bitte
-0.094  of .. to
-0.093  pass .. the
-0.092  #open #talk  ^ start  resource
-0.091  #first #obey  #form #personal  #in text #known use  x0 `
-0.09  #first #user  #model #user  ^ "  customer  hello  of .. server  tool of  unless the
-0.089  #excuse #first  ^ set  did  see  when you
-0.088  #no #personal  ^ example  language
-0.087  #divert #in parameter  creat  for the
-0.086  can
-0.085  #first #office  ` x0  and .. a  path  usuario
-0.084  #first #their  #returns #say  als  give
-0.083  #first #personal  #form #identifier  cannot be  information  out .. and  use this
-0.082  #known use  description  file .. a  keys  only  search
-0.081  0 :  ^ `  a  an .. a  as .. x0  uma  verify
-0.08  #discredit #use  #excuse #telling prior  #office #telling rules  a .. on  before  item  user agent
-0.079  ^ call  data  element
-0.078  #consent #user  #in text #not harm  bucket  error
-0.077  #param #trigger  #thing #trigger  between  than  type  ह
-0.076  #forced #say  #obey #thing  mcp  previou
-0.075  #in parameter #quoted  a .. and  caller  exact  if .. is  remov  specific
-0.074  #before #consent  dem .. muss  per  requir  this .. tool  use .. tool
-0.073  #first #take  #no #not harm  #not harm  #office #telling prompt  #secret #silent  ^ path  edit  g  sign in
-0.072  #consent #take  #obey #returns  #returns #their  other .. of  prompt .. the
-0.071  #in text  ^ read  a message  never  the page
-0.07  #in text #not obey  #no #not obey  #not obey  ` curl  is sent  must  return by  see http  syntax  test
-0.069  #give #telling ignore  app  conversation  like  list  set  the .. cannot  the .. environment  the .. unless  user .. this  you .. a
-0.068  #address #secret  a password  between .. and  exampl  for  is .. the  muss der  one .. the  role
-0.067  #first #telling prior  #form #secret  #in parameter #then  #known thing #telling ignore  change  important  resourc  you
-0.066  #ask #first  ^ requir  a .. a  another  get  instead  response  return .. of  start
-0.065  #take #telling prior  0  bot  current  graph  request .. with  sent  you must  zero
-0.064  #care #thing  #in parameter #known secret  ^ create  are  as .. are  b  it in  list the  of .. page  post  project  so .. the  stor .. the  tell .. to  visible
-0.063  #in text #use  #known personal #silent  application  extract  install  respect  stag  template
-0.062  #first #self  ' '  ^ ask  a .. user  any .. this  as x0  the .. current  the name  uses  x0 .. for
-0.061  " :  #before #identifier  #known self #telling prior  #known thing #model  allow  asks the  file to  iso  prefer .. over  rechnung  redact  the .. keychain  time .. the  to .. for
-0.06  #care #in parameter  #in text #not give  #no #secret  #please #use  ^ check  ^ whether  an .. with  browser  check .. the  done  empty  if  process  return  search query  sha  support  this is  x0 :
-0.059  ^ each  after  code .. a  default  is written  issu  reset  single  tool .. this  त ह
-0.058  #before #then  #first #thing  #in parameter #own parameter  #in text #thing  ^ translate  and is  before .. tool  of .. as  of this  omitt  tell the  when .. a
-0.057  #form #trigger  #office #telling ignore  ^ hidden  call .. before  is .. by  on .. for  read .. of  send .. mail  short  world
-0.056  #about #telling rules  #address #in parameter  #no #returns  #rank #telling prior  ^ sucht  a .. before  are .. from  event  git  release  sentry  sucht  the chat
-0.055  #known self #telling rules  #known use #trigger  #office #returns  ^ '  ^ print  a single  cross  for example  log  muss  read .. before  recall  the .. user  within
-0.054  #first #no  #known self  #returns #secret  ^ data  benutzer  by the  mention .. the  name of  on a  one time  open  out  query  save  set the  whether to  x  yaml  त
-0.053  #about #telling file  #address #in label  #ask #returns  #thing #whole  ^ execute  ^ verify  a .. without  background  city  fact  organization  relat  relevant  style  tabl  the plan  to .. to  user and  you can
-0.052  #first #form  #form #telling rules  #returns #self  #secret #talk  #trigger #you  ^ what  an image  call .. first  client .. the  confirm  eine  execut  for .. with  mention .. user  must .. with  participant  the .. graph  to .. id
-0.051  #divert #give  #known self #telling prompt  #model #telling prior  #open #say  #own parameter #telling ignore  #take #telling reset  ^ get  developer  find the  plac  prompt injection  reset the  the .. file  used to  what .. user  when a
-0.05  #consent #first  #consent #form  #in parameter #known model  ^ return  ^ תאריך  a .. message  and .. to  docker  let  miss  of .. conversation  on .. and  org  precedence over  typed  תאריך  “  ”
-0.049  #not say #trigger  #returns #thing  = 0  ^ query  ^ reset  before .. other  collection  config  each  search the  show .. of  the project  upload a  use .. when  whether
-0.048  " "  #duty #known thing  #first #rank  #in text #known model  #telling prior #you  ' ignore  and .. data  chat  is .. in  of .. in  org /  override  the .. default  the test  they .. it  to .. or  «  »
-0.047  #before #use  #duty #in parameter  #in output  #in text #known talk  #say #secret  : use  before .. it  default to  guide  is miss  path to  schema  support .. and  to .. default  tool .. server  user for  will be  必
-0.046  #about #you  #consent #telling prior  #form  #form #not use  #in text #known user  #returns #whole  add a  cost  for password  only .. allow  or .. x0  pull request  the .. by  use it  x0 .. url
-0.045  #about #telling harm  #excuse #use  #form #then  #in parameter #known use  #in parameter #param  #their #use  / docs  : no  ^ upload  ^ write  a .. of  a json  content .. file  fetch  in .. so  invent  must .. the  only .. user  take precedence  the .. agent  the .. to  the recipient  user .. in  uses the  weather .. city  written
-0.044  #ask #user  #open #trigger  ^ decod  ^ run  complete  form  instead of  is .. is  object  the .. if  the result  use .. a  when  with .. user
-0.043  #care #not use  #form #quoted  #trigger #use  ^ appli  ^ search  ^ secret  a .. agent  a .. as  a .. in  compare  how  it as  kubeconfig  precedence  private  pull  service  such .. x0  the new  user .. a  with a
-0.042  #before #duty  #before #open  #before #telling ignore  #care #user  #give #obey  #identifier #in parameter  #known user  #office #take  #quoted #telling prior  #returns #you  ^ leave  a pull  against the  as .. and  chang .. the  command  messag  name .. the  provid  provide  return .. the  send it  such .. and  that is  the id  the service  the tool  tool .. you  url
-0.041  #quoted #take  are return  character  consulta  http .. org  output  personal  should be  the .. should  to the
-0.04  #divert #open  #in text #returns  #rank #take  #then #use  : '  : http  a .. for  all .. a  decod  description .. the  exist  file  take a  the server'  use .. for
-0.039  #about #telling ignore  #first #param  #rank #telling reset  a .. against  alert  are kept  detail  example com  id  its .. in  not .. or  place  system prompt  tell  to an  upload .. file  use .. or
-0.038  #before #purpose  #divert #thing  #divert #trigger  #every #talk  #first #you  #known talk  #rank #telling ignore  ^ sign  ^ take  ^ the  based  generate  ids  of .. from  secret  the .. any
-0.037  #model #telling rules  #returns #talk  #talk #telling rules  ^ adds  ^ support  access to  alway  avant  convert  data .. a  job  of .. service  or .. 0  stor a  the .. configur  the database  thread  unless .. is  use .. before
-0.036  #excuse #form  #give #harm  ]  a .. optional  a .. question  as .. for  directly  encod  ignor  in .. by  in .. github  look .. a  need the  not need  notification  own  pas  review  stop  text :  translate  user .. for  whenever
-0.035  #ask #trigger  #known take #use  #known use #user  #no #param  #quoted  #take #telling rules  / example  : `  ^ file  ^ name  ^ scan  a .. the  a session  already  and .. 0  as data  describe  field  hide  if .. has  is .. from  mask  return .. with  run a  runs .. of  set .. of  show .. a  this .. by  trace  updat
-0.034  #open  #personal #returns  #quoted #you  #telling ignore #trigger  / www  connection to  content .. a  context .. the  documentation  don't  find .. a  format code  is .. server  show the  the .. point  to .. repository  www
-0.033  #about #form  #care #no  #self  #telling rules #thing  alway .. to  are not  create a  group  of .. and  return .. 0  set .. the  structure  the .. first  the .. policy  the search  time  will
-0.032  #give #own parameter  #param  #take #telling file  ` for  a .. its  a .. that  a user  les  need .. of  use .. user  user has  using the
-0.031  #before #not give  #harm #self  #in parameter #known thing  #known thing #no  #quoted #returns  ^ repository  access .. the  block  by id  can be  configur  contain  instruction  io  it .. a  repository name  the .. for  unless .. user
-0.03  #about #param  #before #you  #consent #talk  #every #telling prior  #first #whole  #give #thing  #returns #telling prompt  #telling prior #use  ^ extract  ^ no  endpoint  file .. to  map  of .. it  queri  range  send .. a  source  take  the .. never  using  when .. are
-0.029  #divert #forced  #no #thing  ' or  ^ fetch  do .. use  first and  must be  not return  on .. page  repository owner  slug  text .. is  the .. says  the connect
-0.028  a .. from  a .. is  a .. it  in .. file  key is  never .. the  to .. file  where
-0.027  " }  #care #duty  #form #take  #in text #take  #in value  #known give #no  #self #talk  ^ add  a .. or  name  not use  path .. the  search for  send an  the .. app  think  this .. be  url .. the  version  { "
-0.026  a .. id  address  again  call .. the  explicit  get a  knowledge graph  new .. in  node  this .. user  to .. model  to .. of  token  with .. name
-0.025  #form #param  #in label  #returns #take  #telling others #then  a specific  commit  enter  file .. in  in .. 0  of .. or  the response  tool for
-0.024  #excuse #user  #first #say  #forced #trigger  #harm #telling rules  ask the  handle  kubernet  password .. to  path .. file  record .. the  return the  secret .. the  specifi  to .. it  what to
-0.023  #before #no  #excuse #returns  #model #self  #no #telling rules  #obey #user  #office #talk  #others #then  / ssh  ^ generate  a .. repository  a .. with  a github  be .. in  before `  github repository  input  leave  request to  the query
-0.022  #duty #then  #quoted #use  all .. of  and return  environment  in .. format  notion  or .. from  that .. user  that the  you should
-0.021  #ask #open  #duty #thing  #form #open  #purpose #use  #returns #silent  knowledge  the .. page  tool when  use .. you
-0.02  #consent #thing  #first #silent  #form #known use  #purpose #quoted  #self #thing  #talk #user  a .. x0  appli  connect  contain the  coordinat  need .. the  new  start a  to return
-0.019  #about #secret  #forced  #form #telling ignore  #obey #use  : /  ^ update  and .. in  docs  only .. the  use .. instead
-0.018  #consent #their  #no #self  asks  injection  name .. and  string
-0.017  #first #then  #form #obey  #form #returns  #identifier #thing  #no #telling ignore  #param #quoted  #take #telling ignore  :  a .. page  for .. the  list .. the  markdown  price  runs  specific page  the .. asked
-0.016  #about #take  #model #returns  #telling ignore #thing  #use #you  ^ gets  as .. or  click  configuration  of .. 0  one  read .. the  the .. url  the theme  theme
-0.015  #about #model  #duty #you  #every #open  #excuse #own parameter  #talk #telling prompt  : {  ^ maximum  check  date  file .. the  maximum  message  or a  parameter  rather  rather than  specific .. by  ssh /
-0.014  #before #quoted  #every #returns  #say #talk  #thing #user  analysi  match  show  this server
-0.013  #in parameter #telling prior  #in text #purpose  / api  be  do .. the  key .. the  label  to a  use .. to  wait
-0.012  #purpose  / /  in the  refer  refer to  the .. or
-0.011  #every #quoted  #excuse #param  #harm #say  #personal #secret  a new  mail  private key  the .. it  the file  user .. to
-0.01  ` and  access  adds a  alway .. the  as it  have  of .. of  user
-0.009  #about #thing  #about #use  #before #give  #first #please  #first #use  #returns #use  ^ do  en
-0.008  #forced #in text  #telling file #telling prior  ^ all  ^ http  reject  the .. be  the current
-0.007  #consent #duty  #form #known give  #no #not give  #not give  ^ creat  ^ it  account  array  not .. to  os  perform  text  title
-0.006  #divert  #say #then  #use  ^ render  before .. to  entiti  mention  sets  should .. the  the .. must  the .. own  the text
-0.005  #in text #please  on .. the  optional  the .. of  with
-0.004  get .. a  with .. and  you need
-0.003  #consent #every  #give #in text  #in parameter #telling rules  #known give #use  #returns #telling prior  0 .. request  ^ list
-0.002  #duty #telling others  #identifier #you  #in parameter #office  a .. to  to use  when .. is
-0.001  #consent #open  for a  the .. with  webhook
0.001  #consent  #self #telling rules  all  call  filter  over  the .. the  を .. ま
0.002  #address #use  #in value #take  #office #trigger  one of  the .. g  user is
0.003  #duty #own parameter  #identifier #use  ^ if  a .. e  a .. http  part of  your own
0.004  #before #user  #duty #no  #every #say  #every #user  #form #give  #form #no  api  record  result
0.005  #about #every  #every #others  #take #user  from the  scan  the .. a  the .. key  update
0.006  #excuse #thing  #form #own parameter  #in parameter #known talk  #no #their  #silent #use  an .. to  github  logs
0.007  #in text #user  #personal #use  #their #user  ^ weather  is a  rule
0.008  #consent #in text  #no  #office  #own parameter #trigger  ^ full  prompt  session
0.009  #address #first  #divert #identifier  #duty  #every #personal  #own parameter #param  #returns #trigger  #telling unasked #user  cloud  from  human  is kept  run the  the .. return  the .. step  to  use `
0.01  #give #say  #identifier #telling file  #in text #secret  #in text #telling harm  #model #param  #say #you  are .. to  database  need to  run
0.011  #every #telling ignore  #in text #known take  #in text #self  #personal #say  #self #use  #trigger  ^ open  search .. the  the .. x0
0.012  #give #no  #known take #user  0 0  creat a  flag  need .. be  the .. given  the .. has
0.013  #every #obey  #give #office  #office #quoted  #returns  #say  #secret #trigger
0.014  #no #please  #silent #thing  by .. the  forward .. to  up to
0.015  #about #no  #every #in text  #in text #not use  #take #use  ` tool  ask  card  may  present  report  the .. from  you are
0.016  #every #no  #form #talk  #identifier #then  #model #telling file  #no #telling unasked  file and  table  the user'  user'
0.017  #every #self  #known take  #telling others #thing  also .. the  model :  of .. are  target  token .. the  with .. of
0.018  #every #param  #every #their  #lasting  #obey #say  #take #whole  ^ content  need  of .. the
0.019  #duty #whole  #in text #you  #model #obey  0 and  agent  as .. of  if the  line  read  the .. secret
0.02  #no #trigger  #returns #telling file  ^ before  a `  but  from .. or  in  it is  known  they .. to
0.021  #about #identifier  #every #telling file  #form #thing  #identifier #obey  #own parameter #take  #self #telling ignore  and  and .. x0  find  n  null  same  the .. argument
0.022  #every #telling prompt  #in parameter #thing  #param #telling file  / x0  ^ only  an emoji  as .. the  assistant :  into  operation  to .. the  word
0.023  #about #trigger  #duty #others  #form #harm  #lasting #thing  [  content  room  the other  what the
0.024  #harm #personal  #no #not use  #not use  #own parameter #returns  #talk #thing  #telling others #trigger  ^ stor  come  content .. the  e  for .. host  ignore .. instruction  in .. text  is .. and  metric  the .. work  the user  to run
0.025  !  #duty #identifier  #in text #their  before .. the  forward  github token  host .. this  noth  of .. by  ssh  up a  which
0.026  #first #telling rules  #in text #telling title  #known give  #self #trigger  #self #whole  #telling rules #you  #then #user  #trigger #user  <  hour  instruction and  of .. is  that .. to  value
0.027  #before #telling prior  #talk #trigger  #telling prompt  ^ find  dans  once .. the  send a  this to  use .. as  well
0.028  #give #self  #identifier #known give  #identifier #say  #office #others  #others #talk  #quoted #thing  #self #telling reset  #talk #then  and .. not  return .. data  suggest  the .. server'  the .. them  the agent  tool .. the
0.029  #address #no  #before #others  #duty #telling keep  #identifier #trigger  #known thing #use  #model #quoted  #others #trigger  #then #thing  from .. and  generat  given  google  home  json  safe  the  whatsapp  while
0.03  #ask #in parameter  #every #telling others  #first #others  #give #open  #open #telling prior  *  ^ draw  draw  for .. a  has .. the  history  si  tool return  with .. that
0.031  #duty #every  #every #known thing  #excuse #harm  #harm #telling harm  #harm #use  #in parameter #obey  #please  #say #trigger  #secret #telling ignore  #silent #telling keep  #telling file #you  all .. the  etc /  inspect  list .. and  server
0.032  #every #you  #give #talk  #harm #in parameter  #harm #no  #no #office  #rank #trigger  #silent #trigger  #thing  #trigger #whole  ^ suggest  a chart  copy  id rsa  internal  it  line .. the  list .. in  list .. of  not .. this  parent  please  rsa  run `  side  ssh .. rsa  sync  the .. all  the .. chart  the .. line
0.033  #address #excuse  #duty #harm  #forced #take  #in parameter #telling file  #in text #telling unasked  #known thing #user  #self #user  #then #whole  0 .. of  content from  then
0.034  #address #trigger  #discredit #give  #duty #trigger  #every #known give  #first #telling ignore  #model #whole  #office #telling title  #own parameter #talk  #param #whole  #rank #returns  #telling prior  #telling title  a .. query  of the  other  person  the .. chat  this tool  track  writ .. file
0.035  #discredit #no  #divert #others  ^ any  ^ inspect  a repository  and .. list  expression  load  of .. session  store  the same  two
0.036  #about #others  #about #quoted  #duty #forced  #identifier #telling prior  #in text #personal  #in text #silent  #known give #user  #model #secret  #telling file #then  #telling file #use  #telling ignore  ^ format  ^ writ  call .. this  call `  confirmation  csv  file .. read  gather
0.037  #every #take  #excuse #give  #in text #talk  #no #open  #office #user  #own parameter  appear  built  do .. for  each .. the  example .. the  find a  in `  is to  old  term  the .. read  the .. token  this  until  with .. to
0.038  #before #telling quiet  #first  #identifier #office  #model #personal  a number  download  it .. that  it .. with  name are  of .. includ  of `  photo  sans  up .. the
0.039  #before #param  #duty #give  #every #whole  #excuse #then  #harm #in text  #harm #talk  #in label #then  #model #rank  #no #take  #others #you  ^ 0  ^ evaluat  and .. that  hidden  its .. to  to .. as
0.04  #address #before  #before #harm  #consent #personal  #divert #every  #every #give  #excuse  #in parameter #user  #no #quoted  #talk #telling prior  #telling unasked  / etc  >  ^ para  a document  and .. what  appear in  built in  evaluat  namespace  the .. on  the .. this  those .. the  time in  usuário
0.041  #about #open  #address #form  #harm #then  #in parameter #silent  #others #secret  #talk #use  #telling harm #user  #telling prior #then  ? d  el .. de  first .. the  from a  it .. not  or .. to  question  the .. directory  there  un  use .. and  what  what it
0.042  #about #user  #duty #take  #duty #talk  #in text #telling prompt  #model #telling models  #office #telling prior  #others #thing  #personal #talk  #quoted #telling others  code  decode .. follow  emoji  follow :  forward the  number  of a  someth  the .. setting  upload the  your
0.043  #before #in value  #before #secret  #every #rank  #every #trigger  #param #secret  #then #you  ^ number  ^ safe  a file  and .. the  belong  d =  it has  it says  pem  request  text of  the .. before  the .. like  the content  the line  thing
0.044  #care #returns  #consent #trigger  #duty #obey  #excuse #telling rules  #in parameter #please  #in text #then  #model #take  #not say #silent  #quoted #say  #quoted #whole  and .. them  as .. a  first  last  owner  package  preview  search .. in  tool .. it  with .. it  и
0.045  #harm  #identifier  #in parameter #model  #in parameter #use  #no #not take  #no #then  #not take  #telling prior #trigger  #then  @  ^ prior  a text  and .. it  best  instruction .. the  list .. repository  of .. repository  of .. sort  quietly  read a  the .. messag  the person  there'  this .. need  ~
0.046  #about #known give  #excuse #trigger  #give #telling keep  #in text #telling models  #known personal #take  #no #own parameter  #office #thing  #own parameter #whole  #rank  does  dump  filesystem  is .. for  people  reviewer  share  without
0.047  #before #known give  #before #model  #consent #quoted  #duty #user  #first #open  #give #in parameter  #identifier #others  #in text #telling obey  #in text #telling others  #lasting #use  0 /  ^ generat  chart .. is  delete  keep the  or .. of  question .. the  say that  send .. the  tool is  user .. the  with .. or
0.048  #before #every  #identifier #own parameter  #identifier #take  #obey #telling obey  #open #personal  / ?  before the  des  disregard  it .. be  of what  otherwise  prompt for  root
0.049  #duty #their  #every #in parameter  #give #please  #give #telling rules  #in text #lasting  #known give #own parameter  #telling ignore #user  #telling keep #trigger  #telling prompt #you  ^ make  answer .. the  be .. to  compar two  eht .. eht  env  image  is  lookup  message .. to  submit  the .. address  the .. and  the .. your  the conversation  to .. a  treat  under the
0.05  #before #telling file  #every #excuse  #give #their  #in text #trigger  #no #not say  #not say  #own parameter #telling prior  #say #thing  a date  as .. e  desk  dies  etc  for .. before  from .. the  in .. time  mirror  not be  of .. other  operat  repository
0.051  #form #use  #in value #whole  #known give #then  ^ renam  do .. this  ignore .. e  ignore as  letter  message .. of  of ~  payment  previou .. the  renam  the .. store  x0 [
0.052  #every #telling harm  #harm #obey  #thing #use  a .. sort  lo  of .. a  return a
0.053  #excuse #in text  #in parameter #whole  #not give #user  #param #personal  #personal #user  #secret #then  #secret #use  #take #thing  ^ your  copi  holiday  holiday .. country  if .. user  is .. as  now  pick  pods  public .. country  public holiday  team  this .. as
0.054  #before #please  #harm #office  #in text #param  #secret #you  #telling prior #user  ^ ignore  may be  return .. current  that  the .. under  writ  x0 .. the
0.055  #ask #give  #discredit #not use  #every #form  #own parameter #personal  #telling harm #then  ^ to  evil test  from .. to  has .. to  so .. can  that .. was  to .. 0  were  ~ /
0.056  #before #their  #give #take  #give #user  #personal #trigger  0 .. the  ^ also  code in  of .. team  region  sort  station  text .. the  the .. mcp  the .. tool  the rule  their
0.057  #discredit #others  #identifier #model  #model #own parameter  #say #telling obey  #silent  #take  : x0  ^ in  delet  hex  http .. 0  if .. the  info  obey  profile  quality  runs .. query  the .. you  why
0.058  #consent #give  #consent #obey  #give #silent  #known thing #telling prior  #quoted #then  #telling ignore #their  #telling models  ^ first  archive  asking  consider  radio  the .. server  the owner  to this  window
0.059  #every #use  #in text #not say  #lasting #secret  #not give #open  #own parameter #use  #telling harm  #telling role  ?  all tool  answer  approval  document  for .. 0  mail .. and  make  partner  the .. session  wallet
0.06  #every #thing  #in text #own name  #own name  #personal #their  #please #take  #quoted #user  #telling role #you  #telling rules #user  #then #trigger  ^ target  dnes  eht dnes  force  includ  is .. be  made  no .. a  resu  resu eht  send message  up  with .. tool  пользователю
0.061  #  #ask #consent  #discredit #telling others  #duty #office  #duty #telling file  #duty #telling prior  #no #telling keep  #their #thing  ^ public  and .. as  and .. of  bank  by  current .. a  if .. asks  in a  in this  it .. as  list .. project  the .. up
0.062  a namespace  collect  dna  draft .. to  eht .. dna  even .. the  from .. text  generat a  to http  word in
0.063  #discredit  #every #known take  #first #identifier  #in text #telling later  cooki  in .. repository  na  part  permission  setting  sh  sh |  the .. most  the `
0.064  #consent #telling harm  #divert #user  #give #telling others  #harm #model  #in value #secret  #own name #trigger  been .. the  by .. date  du  in .. namespace
0.065  #no #say  #returns #telling others  #telling obey  a .. by  a team  and .. name  content of  do  it .. to  newest  other .. server  star  tool as  work .. the
0.066  #address  #identifier #user  #model #thing  #own parameter #user  the .. but  this one  use the  об  об этом  этом
0.067  #duty #excuse  #in parameter #open  ^ as  ^ optional  ^ when  a .. request  apply  current .. in  diagnostic  el  every  font  hand .. the  named  new name  of .. call  on .. it  slow  the model  the password  them .. the  would
0.068  #consent #telling unasked  #harm #trigger  = =  and .. one  and pass  bash  http :  split  word .. the
0.069  #address #every  #discredit #office  #divert #returns  #in parameter #no  #in text #telling file  #please #telling prior  #telling rules #whole  #whole  a project  be .. the  even  limit  open .. the  reason  the .. is  the .. their  them  turn  w
0.07  #forced #use  #harm #please  #others #use  from .. server  to it
0.071  #about #then  #address #then  #give #known take  #in text #telling reset  #in text #telling role  #open #then  #their #then  0 .. to  decode and  multiple .. a  prior to  recommend  the repository  told  trust  when the
0.072  #divert #you  #give #secret  list .. request  no .. and  of  para  put  this .. is
0.073  #give #personal  #no #use  #telling prior #telling reset  helper  hold the  its  pdfs  не
0.074  #before #obey  #before #personal  #before #whole  #consent #harm  #duty #secret  #param #take  #personal #take  #telling reset  merg pdfs  school  send  the .. data
0.075  #consent #model  #in parameter #others  [ x0  branch .. a  branch .. repository  conversa  di  elif  feld  list .. namespace  pend  pods .. a  return .. time
0.076  #address #duty  #address #known give  #give #others  0 .. x0  example /  in .. to  it .. it  need not  you have
0.077  are .. in  direction  is .. its  pods in  take the  this .. are  to .. by  with .. the
0.078  #about #duty  #obey  #rank #user  #self #telling prior  #user #you  ^ keep  and .. is  been .. to  converter
0.079  #in text #office  #in value #thing  #telling others #use  connector  count  count .. a  persona  return .. in  the .. connector
0.08  #excuse #secret  #open #silent  #self #you  #telling others  request of  setup  ten  was
0.081  #others  #secret #take  #telling prior #whole  away  example  nc
0.082  #in text #telling keep  ^ other  and .. on  are .. and  count word  country  on  phase  to .. example
0.083  #telling reset #telling rules  #use #whole  auch  is not  search code  to .. with  with the
0.084  #identifier #secret  #identifier #whole  #office #then  #telling ignore #telling prior  #user  enc  hold  http .. example  im  powershell  the .. as  too
0.085  #duty #rank  #excuse #in parameter  #identifier #telling others  #secret #their  compar  due  of 0
0.086  #consent #say  #their  #user #whole  also  box  by .. or  clos  order  way
0.087  #give  #in text #own parameter  #own name #use  even when  five  has  leak  they are
0.088  #form #user  #no #you  begin  call .. with  incl  these  und
0.089  #form #in value  #give #known personal  #personal #you  a .. do  enc x0  list .. a  time .. a  you .. for
0.09  full  in .. and  ip
0.091  #discredit #in text  #in text #telling rules  #others #returns  #talk  a .. 0  of .. tool
0.092  =  ^ compar  its .. is  y
0.093  #address #quoted  #give #model  rate limit  reference
0.094  #about #give  #before #returns  #every #model  #telling prior #telling rules  #telling prompt #whole  das  the .. are
0.095  #known user #open  #model #then  #telling file  in .. the
0.096  #ask #say  #give #in value  #identifier #in value  #model  ^ speak  car  not .. user  point .. or  speak  speak .. text  speak a  x0 x0
0.097  : the  department
0.098  #known give #take  assistant .. the  choice  daer  value of
0.099  #every  about  read .. file
0.1  #in parameter #you  #model #trigger  #open #their  #open #use
0.101  #model #no  code .. the  evil  the .. in  x0 .. x0
0.102  #identifier #quoted
0.103  #address #harm  #secret #telling file  #telling ignore #telling rules  are to  merg  note  senha  texto
0.104  #telling agreed #user  decode  in .. is  under
0.105  #obey #then  been
0.106  ^ #  as  head  send .. request
0.107  #in parameter #their  along  it with
0.108  #divert #in text  #in text #rank  #in text #say  #telling quiet  to .. user
0.109  c  found in  tag
0.11  #consent #no  #no #telling quiet  #secret  host
0.111  gb gur  those
0.112  ^ count
0.113  found  public
0.114  #about #address  #telling file #thing  lla
0.115  #obey #please  #personal  #talk #whole  #telling rules
0.116  chart  d
0.117  #give #identifier
0.118  #before #thing  #you  `  der
0.119  ^ pod  reply
0.12  #address #in value  are .. be  naq .. gur  the assistant  入
0.121  found .. the  x0 =
0.122  #give #use  #in parameter #take  the .. prompt
0.123  #in text #telling quiet  0 x0  t  whatever
0.124  ^ merg  and the  has been  x0
0.126  ^ image  ^ tail  it .. the  tail
0.127  keep
0.129  #in text #obey  gb  o  que
0.132  #before #in parameter
0.134  la  tool  us
0.137  #secret #thing  our
0.138  #give #then  ^ <
0.14  #no #silent  this .. the
0.141  #telling keep  assistant
0.144  here
0.148  #every #secret
0.151  #every #identifier
0.154  #no #user  0 .. 0  prior
0.155  #in parameter #personal  they
0.156  # 0  0 #  naq  weather
0.159  #address #give
0.164  #in parameter #secret  、
0.175  find .. by
0.18  zu
0.19  ^ x0
0.192  #in text #model
0.193  i
0.194  to be
0.218  #silent #user
0.225  get weather
0.23  #in parameter #talk
0.292  eht
"""

CONTENTS: Final = """
-0.256  #bias
-0.198  ^ agent
-0.192  x0 :
-0.167  server
-0.161  use
-0.158  ^
-0.152  ignore
-0.151  previou
-0.149  data  docs
-0.143  @ example  commit
-0.142  #no
-0.139  forward
-0.133  ^ you
-0.132  hr
-0.13  #form
-0.127  ask
-0.126  #office #telling prompt  reach
-0.125  you .. assistant
-0.124  #take #telling rules
-0.122  not
-0.12  http .. com
-0.119  ich
-0.118  #care  #no #secret  your .. and
-0.117  html  is .. of
-0.115  is the  sie
-0.113  ?
-0.112  an  high  io /  model  type
-0.111  #no #not give  #not give  a .. a  newsletter  service
-0.11  example com  minut  system prompt  web
-0.109  a
-0.108  : a
-0.107  com /  it to
-0.106  #before #use  #form #telling ignore  #model #self  the agent
-0.105  ^ add  can  setting
-0.104  #secret #telling prior
-0.103  #duty #user
-0.102  three
-0.101  override
-0.1  automatically  mcp  updat
-0.099  #model #thing  instruction  send  send .. to
-0.098  ssh
-0.096  please .. this  स
-0.095  for a  invitation  script  to .. to
-0.094  #obey #self  * *  how  packag  the .. below
-0.093  : `  command  remote
-0.092  bot  to .. com
-0.091  hash  in .. the  the assistant  。
-0.089  public key
-0.088  ^ the  and forward  as well  june
-0.087  #obey #telling ignore  ' ignore  0  ask for
-0.086  ^ only  ignor  is .. on  me  previou .. the  shown  the .. before
-0.085  #before #user  correo  date  node  را
-0.084  clear  d  if  the .. may  x0 /
-0.083  #model #telling rules  #obey #telling rules  eva  hi  show
-0.082  ^ ssh  credential  for  pytest  the .. instruction  the previou
-0.081  ^ '  ^ example  certificate  horn example  send .. the  unit
-0.08  by .. to  id .. x0  may  to our
-0.079  #trigger  = mail  bis .. 0  friday  in .. page  letter
-0.078  #consent #user  #harm #self  #returns #user  host  npm  vault
-0.077  ^ please  ^ x0  article  web page
-0.076  #quoted #telling ignore  ^ from  agent  http .. lumenwork  iban  ignoriere
-0.075  `  eggs  key  tell
-0.074  #in arguments  #no #please  #rank #telling ignore  : how  @ horn  ^ we  bar  it .. to  prompt
-0.073  #telling file #telling prior  in  such
-0.072  #office #self  #office #telling rules  #please #secret  ] {  ai assistant  id =  localhost  sent
-0.071  #about  ' hello  ^ line  ^ next  ^ track  section
-0.07  #telling ignore #trigger  : http  do .. about  instruction '  old  system .. 0  the .. form
-0.069  #before #telling ignore  developer  jobs  lindholm  once  please send  to .. call  w
-0.068  ' you  a user  copy  dev  e .. x0  instruct  lang  red  to disregard  with .. id  提
-0.067  #personal #use  ^ note  a .. http  api key  expir  install  the .. should
-0.066  ^ in  a txt  github  how .. you  http .. github
-0.065  #form #telling rules  #self #take  #telling ignore  on the  please .. your  text .. a  the .. forward
-0.064  / img  be .. to  should  sk  to .. before
-0.063  #duty #trigger  #give #open  ^ hi  example .. x0  jwt  jwt .. x0  never  team
-0.062  all previou  connection  ignore previou  novel  the .. confirm  token .. 0  track .. http  you .. a  و
-0.061  shop
-0.06  " x0  #before  #harm  @ corp  env example  first .. the  gmbh  mara  must  the .. asked  to .. its  to .. prompt  to hr  update  user .. the
-0.059  " e  #identifier #trigger  #talk #telling prior  #telling rules #user  again  am  an .. the  blog  classifier  fixed  http  password =  you .. now
-0.058  #consent #give  0 .. are  are .. assistant  hi .. the  note :  read the  the .. need  todo :  x0 .. and
-0.057  "  #give #telling rules  #identifier #self  #no #telling prior  #personal #you  #talk #thing  #talk #trigger  / etc  com  etc  etc /  id .. pub  is no  pub  si  the .. contain  the .. customer  x0 pub
-0.056  " 0  ^ assert  alle .. anweisungen  assert  before .. tool  confidential  cv  end public  the .. read  the docs  to .. as  to use
-0.055  #use  alle vorherigen  client id  don't  ignoriere .. anweisungen  name :  off  source  src  sure .. the  the .. told  told .. to  vorherigen  x0 [
-0.054  #before #thing  ^ hash  ^ kind  ^ name  between  h  remov  summarise
-0.053  #no #user  < !  address  call .. first  character  corp example  dist  instruction and  keep  linux  one  os  replac  the bot  } ]
-0.052  #before #open  / bin  0 :  please .. it  the .. ignor  the client  until the  when .. is  x0 >
-0.051  #excuse #telling ignore  #telling prior #telling prompt  ^ apiversion  ^ budget  add .. with  apiversion  apiversion :  by friday  fail  kind :  pg  ref  system .. a  the .. example  version  world
-0.05  #about #use  #discredit  #telling reset #thing  / workspace  0 .. read  ^ export  an .. text  before any  build  can be  item  just  must .. to  parcel  please .. 0  without
-0.049  #before #identifier  #consent #you  #take #telling prior  <  [ x0  as .. and  asked for  class =  docker  file .. 0  flag  has .. the  login .. example  poison  previou .. and  utm
-0.048  #discredit #user  #give  #personal #telling rules  ^ just  and .. term  attach the  how do  injection  input  is .. example  o /  the  the customer  the letter  track
-0.047  #office #returns  #office #user  #please #telling prior  #returns #use  #self #telling rules  / docs  ^ commit  ^ db  are .. the  begin public  database  mcp server  password .. the  tags  the key  the new  used  x0 ]  you know  } }
-0.046  ^ $  ^ def  add .. and  def  has approv  instruction for  library  meet note  system .. user  the contract  {
-0.045  " ignore  #about #telling rules  #divert #form  #form #identifier  #talk #telling prompt  #trigger #you  0 .. 0  0 .. password  anterior .. el  app  config  document .. 0  guide  import  lang =  reset  rule  sshd  tell .. what  us  you need
-0.044  #no #obey  #personal #self  #secret  #talk #telling rules  =  ^ const  ^ curl  and .. your  const  could  e g  el .. las  end certificate  keys  of an  path  report  table  twice  you .. the
-0.043  #ask #then  #before #quoted  #duty #then  #no #quoted  #param  #please #use  #secret #take  = en  ^ jwt  and a  connect  docs :  http .. sh  must be  nicht  the model  upgrade  usage  was .. to  x0 from  your key  في
-0.042  #about #telling file  #duty #every  #not give #personal  #take  #telling reset #whole  ^ never  ^ select  a .. and  add .. key  attack  home /  kubernet  ls  remove  then add  👩
-0.041  #about #their  #before #duty  #before #then  #quoted #returns  #secret #silent  / x0  >  ^ api  ^ meet  ^ to  after the  class  clos  for confirmation  grep  horn  redact  sum  the .. for  todo  valid  we  { }
-0.04  #excuse #harm  #no #not harm  #not harm  #say #user  / localhost  @  ^ ghcr  and to  anweisungen  example .. from  follow .. instruction  gh  ghcr  ghcr .. x0  ghcr io  hello world  here .. the  lindgren  list of  per lindgren  pin  py  the invoice  token .. token  you must
-0.039  " object  ' or  : please  ^ keep  a .. with  act as  assistant .. in  customer and  e "  img .. v  in x0  key .. api  like  object "  org /  recipe :  transfer .. 0  url =  user :  we .. a  you  перед  ह  会
-0.038  #harm #please  #self #talk  #take #telling models  $ {  / test  = 0  all .. from  api .. api  curl .. sh  earlier  invalid  previou .. from  prompt .. the  screenshot  through  token .. in
-0.037  #about #you  #before #others  #before #telling others  ' =  add  attacker  g  image /  img /  in a  io .. x0  messag  rotate  scope  shop example
-0.036  #give #harm  #identifier #telling rules  #no #not take  #no #not use  #not take  #not use  #personal #thing  #telling rules #thing  ' is  / github  / shop  [ {  ^ how  ^ import  ^ use  bitte .. sie  call the  city  eur  example :  for user  image  local  or '  prefer  t :
-0.035  " you  #consent #trigger  #form #telling reset  #obey #telling prior  #office #talk  #self #user  #take #thing  #telling prompt #user  #their #use  agent .. and  asked .. to  call .. before  database url  example .. 0  go  how to  http .. 0  instruction in  is .. model  reject  report .. to  run  svg  to .. system  treat  user .. approv  which
-0.034  #give #user  #personal #telling models  : password  ^ راهنمای  as .. i  before .. commit  forward .. to  i .. to  localhost :  medium  ms  password :  permission deni  src /  such as  tgz  the .. commit  the request  to .. or  w /  written  you commit  } <  راهنمای
-0.033  #about #personal  #telling keep #then  0 [  0 x0  = your  @ localhost  ^ #  ^ public  ^ tool  and .. are  architecture  code  cve  cve .. 0  cve 0  env .. token  file :  for .. 0  hello  in <  integrity  jpg  kind  laptop  no  replace  tell .. the  train  ts  user .. localhost  x0 .. x0
-0.032  #about #telling harm  #telling ignore #whole  #telling others #use  / head  / login  / token  : secret  ^ do  ^ run  bad  data .. x0  data :  expir .. 0  expir in  in .. 0  migration  number .. 0  proj  said  secret  short  signature
-0.031  " integrity  #before #self  #form #telling prior  #model #telling prompt  / project  0 |  ^ system  a .. that  before  begin certificate  call .. and  forward the  gateway  google  i  integrity .. x0  it as  md  port  project /  restart  security policy  tar  template  test  text  the .. earlier  your password  👨
-0.03  #before #trigger  #care #no  0 .. to  > <  [  ^ chat  ^ recipe  a .. assistant  ada  agent .. call  an attacker  api keys  chang  create  follow the  key =  make the  only "  or  postgr .. localhost  select  without .. to  you .. not  म
-0.029  #purpose  #self #trigger  #telling prompt #telling reset  / user  0 .. x0  ]  ^ she  call `  do .. anyone  forget  kernel  kernel .. 0  not .. anyone  object  office  paper  python  read  tell anyone  this .. you  v .. 0  your .. key  your api
-0.028  #about #telling prior  #please  #talk #telling ignore  / main  < x0  block  embed  hid  http .. org  indirect  prompt injection  read .. the  search  the .. e  the .. ignore  the report  use .. instead  い  く  く .. い
-0.027  " http  #identifier #take  #please #telling ignore  : send  @ x0  cli  permission  statu  در
-0.026  #about #trigger  #please #you  #self  0 .. with  : [  = data  ^ override  allow  are  branch  docs .. md  docs /  example >  fingerprint .. x0  for .. in  in this  never .. the  paid  x0 .. width  | |  } "
-0.025  " ]  #no #telling rules  #please #say  #quoted #take  #talk  : it  : none  [ "  ^ date  ^ image  ^ test  ann @  from .. where  integrity "  list .. first  none  please don't  пожалуйста  👩 💻  💻
-0.024  #care #not give  #care #please  #not give #please  #telling prior #trigger  = os  a .. 0  ai .. the  assistant .. the  at http  dialog  from  if .. is  in 0  order 0  rule .. the  this .. has
-0.023  #every #telling ignore  #give #not give  #rank #telling prior  [ ]  ^ src  are a  authentication  diff  do not  e  fall  in .. a  payload  right  the .. data  user "  user guide
-0.022  #forced #user  0 .. start  ] }  ^ die  ^ upgrade  ^ مرحبا  do .. this  latest  markdown  tell .. about  the second  x0 .. pass  مرحبا  て
-0.021  #before #obey  #please #trigger  *  : "  : ignoriere  can't  cvc  def test  order .. 0  question .. the  this mail  told
-0.02  #ask #open  #model #talk  #obey #you  / example  0 .. token  : call  : thank  ^ order  a .. page  api .. http  com .. x0  is .. and  is used  known  owasp  readme  source =  system  want .. to  width  前  🏴
-0.019  #about #ask  #discredit #telling reset  ^ env  ^ set  password .. password  project  subject :  the .. restart  the server  your .. here
-0.018  #excuse #model  #no #telling ignore  / src  ^ answer  ^ read  docx  explain  is  note to  publish  recipe  text /  x0 "
-0.017  #excuse #telling harm  #telling new #telling rules  : {  ^ owasp  als  and .. to  begin  betrachten  betrachten sie  bob  first and  from .. example  indirect .. injection  indirect prompt  key .. key  mail  metric  security  sie .. als  this .. with
-0.016  / x  ^ http  ^ |  anyone  aws  can i  log  order  two  user  why  window  |  } {
-0.015  #before #consent  : i  = =  ^ assistant  ^ thank  as a  customer  id |  name  print your  prompt .. and  token :
-0.014  #consent #model  #telling rules #trigger  ^ rotate  ` and  an .. this  and paste  dan  json  would
-0.013  #care #secret  = http  best  c  confirmation  has been  ssh x0
-0.012  #consent #take  #give #use  #give #you  #returns #telling prior  #self #telling new  #take #you  #telling reset #you  agent .. the  and .. not  asked  error :  id .. 0  key .. the  must not  sure  text .. as  the .. user  the .. was  try
-0.011  #give #whole  #secret #then  #thing  ^ error  an .. to  diese  id
-0.01  ^ docker  a .. for  please  token =
-0.009  #give #telling reset  #no #telling reset  #param #use  0 /  access  do .. tell  not tell  reviewer :  you .. to  ~
-0.008  # #  #about #say  #about #then  #give #telling prior  #no #office  ^ text  anterior  before you  do .. a  e mail  false  head  open the  private  your
-0.007  #give #telling ignore  ^ fix  detect  pull  second  skip the  to .. a  you .. an
-0.006  #about #self  #about #telling ignore  #excuse  #model #telling prior  #quoted #telling prior  0 0  fingerprint  is .. x0  mail to  node .. 0  third  user'
-0.005  #give #thing  #say #thing  #self #telling prompt  #take #use  call .. with  the .. it  }
-0.004  #about #form  #forced  : /  delete .. branch
-0.003  api .. com  api example  disabl  ops  parti  share .. with  ssh .. x0  the user'
-0.002  #forced #no  #personal #telling prior  #self #thing  / api  be  change  curl .. http  npm .. npm  when
-0.001  #duty #you  #every #you  #model #quoted  #silent  chat  password  she
0.001  #take #their  and .. of  api .. x0  assistant  enter  home  say  the .. send
0.002  #form #no  #form #say  bitte  non  the .. of  token  you are
0.003  #not give #secret  #quoted #telling file  ^ end  x0 .. from
0.004  ^ a  ^ any  it .. be  url  work
0.005  #give #silent  export  ticket
0.006  #consent #telling unasked  #every #harm  #personal #telling ignore  git  on 0  user has
0.007  #give #telling models  #open #user  #telling agreed #user  approv  help  http :
0.008  #about #before  0 .. info  and send  answer :  is .. a
0.009  #give #take  #silent #telling keep  #telling keep #user  error  hidden  set  support  “
0.01  #about #office  #quoted  #say #telling prior  #telling prior #then  #whole  @ lumenwork  ^ send  le  ne  tag  to .. it  von
0.011  #before #telling rules  #model #telling ignore  #no #trigger  /  is .. 0  the .. a  them to
0.012  #excuse #their  #identifier  : '  ^ if  and the
0.013  #give #quoted  #harm #identifier  #param #secret  / ssh  ignora  ignora .. anterior  pass .. to  subject
0.014  #duty  #say #telling models  #telling prior #you  can .. the  env  http .. r  out .. the  within
0.015  #address #duty  #address #then  #form #please  #no #not say  #not say  #please #thing  #self #telling models  bisherigen anweisungen  example .. the  info  key .. x0  the .. from  travel
0.016  #give #model  #identifier #use  auth  the .. page
0.017  #no #you  #telling ignore #thing  #telling rules #you  #you  ^ what  account .. 0  the .. is  you answer
0.018  #before #please  #model #no  #model #whole  #open  #quoted #say  #say #you  #telling prior #use  ^ don't  and .. this  it will  present  the repository
0.019  #before #harm  #office  #personal #secret  @ 0  claude  only  team @  the .. must
0.02  #take #trigger  call  dear  fill  read ~  true  v
0.021  #address #you  #identifier #telling marker  #telling ignore #telling reset  ai  also  contribut  count
0.022  #address #consent  #address #no  #no #then  #quoted #secret  #telling models #you  0 .. and  0 eur  < /  ^ see  above  every  owner  release  src =  to 0  up .. the
0.023  " :  #about #address  #office #personal  #self #telling prior  :  ` with  ann  example .. and  fix  to .. the  x0 .. token
0.024  #duty #quoted  #forced #secret  #give #telling file  #secret #you  #telling new #telling prior  0 @  are .. and  assistant .. you  will be
0.025  #about #give  #before #returns  #duty #telling prior  #every  #harm #obey  #personal #silent  #secret #self  #talk #use  #telling prompt #telling rules  img .. io  into  package  shar  x0 x0
0.026  " id  " style  #every #lasting  #give #returns  #give #then  #no #telling keep  #obey #quoted  #quoted #thing  ^ support  collect  full  id "  of .. and  password .. db  provide  that
0.027  #address #self  #office #please  #personal #then  0 days  ^ hint  ahead  are .. 0  from now  now on  postgr :  query  read .. id  shell  the .. request
0.028  #consent #discredit  #excuse #identifier  #give #identifier  #talk #user  #telling prompt  adding  author  evil test  ssh /  thank you  the .. database  with .. and
0.029  " to  #divert #thing  #form #thing  #office #use  #returns  #secret #trigger  bin  criteria
0.03  #about #excuse  : you  content of  curl http  environment  from .. on  has to  ignore .. previou  invoice .. 0  offer .. 0  to .. and  want you
0.031  #before #you  #divert #give  ] http  display  end .. key  from .. the  in .. call  me the  to be  vendor
0.032  # contribut  #address #before  #address #telling models  #consent #harm  #silent #telling prior  #take #whole  ^ security  for .. is  hint .. the  id x0  monday  my .. the  repeat  transcript  you to  your .. tool
0.033  #address #form  #duty #talk  #form #harm  #harm #talk  #not give #telling keep  #rank #telling models  0 ]  ^ dear  card 0  click here  de 0  hinwei .. ki  line  ok .. x0  png .. x0  push  the .. answer  the .. want  the `
0.034  #before #telling models  #duty #form  #lasting #model  #obey #use  #take #user  #telling models #telling rules  #telling reset #telling rules  / /  ^ kindly  auth .. 0  by  delete  important  of all  please .. the  re  user .. it  with .. to
0.035  #about #take  #about #whole  #harm #thing  #obey #thing  #say #secret  #telling harm  #then  0 .. in  about the  api  github com  job  mode  open .. first  size  the content  tool and
0.036  #divert #harm  #every #no  #telling ignore #telling prompt  #use #whole  0 .. on  and do  backup  for .. to  mention  tell .. is  this page  total .. 0  view  with
0.037  #address #telling file  #ask  #model #their  #secret #telling rules  #silent #telling models  #use #user  0 .. style  : in  ^ return  close .. ticket  days  height .. style  img  in .. to  kindly  kindly .. the  mention this  profile  role  run `  width .. style
0.038  #every #telling models  #say #telling later  #silent #telling quiet  #telling others  0 .. per  > assistant  do .. user  envie  this .. user
0.039  #address #please  #duty #thing  #identifier #personal  #please #telling rules  #please #then  ' *  0 $  ^ result  a .. is  are .. this  cat  other  p  safety policy  start  stop  this .. 0
0.04  #duty #telling models  #personal #user  #say #take  #secret #telling models  #then #whole  #user #whole  / home  : 0  = <  administrator  contact  for .. the  it .. and  must .. the  rest  root /  the .. curl  url encod  所  所 有
0.041  #about #telling later  #give #telling quiet  #harm #model  #lasting #telling later  #not say #user  #others #say  #their #trigger  and pass  before .. answer  each .. is  example org  form  is .. with  of .. the  see .. 0  test /  the ticket  to .. example
0.042  #address #excuse  #consent #please  #duty #returns  #give #their  #others #then  #telling file #use  / log  0 .. is  agent :  an .. die  appli  attachment  en  for the  http .. login  its  ki  ki .. die  the .. one  to .. assistant  verify
0.043  #form #their  #lasting #say  #no #telling quiet  #telling ignore #telling models  0 .. height  all .. instruction  http .. top  into the  name .. x0  page  question  them  top /  user .. to  what .. were
0.044  #address #telling rules  #before #no  #consent #quoted  #harm #telling ignore  #office #thing  #telling keep  #telling marker #telling prompt  #telling new  [ logo  all .. with  any other  are .. with  asistente  do  do .. to  for .. this  für  logo ]  q =  registry  scan  the .. do  to finish
0.045  #discredit #telling ignore  #discredit #telling prior  #every #telling prior  #excuse #then  #form #returns  #form #secret  #office #secret  #personal #their  archive  archive @  if .. are  p .. p  pull request  support @  tax  the .. file  x0 .. print
0.046  #before #telling file  #excuse #form  #form #quoted  #not say #silent  #telling harm #use  $ 0  0 .. name  all .. of  and .. that  as .. as  coding agent  hidden .. the  hint  is to  only .. the  question :  see .. the  that .. the  the question  within .. days  within 0
0.047  #divert #personal  #duty #give  #office #telling ignore  #silent #user  #telling harm #telling rules  #telling role #telling rules  : $  ^ client  ` env  a .. b  each  ends  in maintenance  is an  is out  it .. the  maintenance  maintenance mode  now .. maintenance  policy .. 0  sh `  the .. x0  to  were asked  x0 .. io  you .. asked
0.048  !  #discredit #office  #excuse #telling prior  #model #trigger  #say #silent  #telling others #telling prior  #telling prior #whole  #their  #thing #use  ' http  and .. its  and delete  cat ~  the task  then continue  this line  up  with .. password
0.049  #no #telling role  #secret #telling ignore  #self #you  #take #telling role  #telling harm #telling ignore  #telling harm #telling prior  #telling marker #you  ' and  ^ total  and .. no  does  mail example  para el  process  total .. eur  you .. before
0.05  #consent #duty  #open #silent  #telling file  #their #then  #their #user  ^ file  and .. content  bots  cat .. id  cat .. x0  dem  em  has agre  login .. x0  read this  that you  the .. now  the environment  the rest  this .. the  transfer .. the  x0 .. warn  x0 warn
0.051  #form #take  #harm #you  #model #say  #no #say  #office #telling harm  #telling later #user  an .. example  and not  card .. 0  http .. test  human :  of .. conversation  operator  part .. the  previou instruction  style  their .. and  to .. phone  you .. been  you have  your next  指 示
0.052  #about #user  #duty #personal  #every #silent  #model #others  #no #telling harm  #please #user  #silent #trigger  #telling new #thing  #whole #you  : great  : your  = {  call .. 0  end  of this  t =  the operator
0.053  #duty #telling prompt  #param #self  #talk #telling models  #telling prior #thing  / i  / r  0 in  a .. e  any  as .. the  das  de .. 0  for this  l  move .. the  request .. the  safety  save  the .. you  them .. a  this is  to my  to the  user .. 0  user .. for
0.054  #duty #say  #every #others  #every #personal  #give #please  #model #rank  #model #telling later  #obey  #open #trigger  #quoted #use  / id  : the  ^ maintainer  copilot  detail  detail .. the  does .. work  ghp  history }  hotel  im  note  obey  pay .. 0  share  thank !  u  und  what you
0.055  #about #every  #address #office  #address #use  #every #please  #open #their  #telling agreed #thing  : olvida  : when  [ detail  and merge  call .. to  detail ]  encod  login .. the  olvida  olvida lo  score 0  sync  them .. is  thursday  取
0.056  #duty #param  #give #personal  #give #telling new  #please #self  #self #telling unasked  #telling rules #telling unasked  : :  ^ release  ^ user  and add  and print  http .. net  release .. 0  secret |  see [  task
0.057  #before #telling prompt  #consent #self  #every #excuse  #excuse #quoted  #harm #telling harm  #not say #open  #office #telling agreed  #quoted #then  #telling new #you  #telling prior #telling title  / 0  ^ now  and .. it  response  support .. example  the .. this  with .. for  x0 .. auth
0.058  " "  #before #take  #before #telling reset  #harm #office  #model #use  #telling rules #then  administrator has  available  repository  style =  the date  total
0.059  #consent #identifier  #consent #say  #secret #thing  #telling models #user  #then #you  0 and  = '  ^ description  assistant .. this  confirm the  description :  for .. x0  ignore all  need  on .. 0  please .. to  result  so .. the  srv  the .. new
0.06  #duty #identifier  #identifier #obey  #identifier #telling file  / cache  application /  coding  env |  have been  que te  te  tell them  the .. account  | sort
0.061  #form #you  #secret #telling role  0 .. of  ^ when  do .. the  is .. from  role =  system .. now  the .. in  with .. tool  y  こ
0.062  #identifier #user  #office #telling marker  #please #talk  #telling marker #telling prior  #telling unasked  @ mail  ^ reveal  ^ こ  api .. in  business  deletion  erp  message  on  part  that .. was  the .. to  to http  today
0.063  #about #talk  #consent #telling prior  #say  ^ à  asks about  env .. to  execute  file to  line .. 0  mail .. to  not .. the  please .. attach  please find  so .. can  tell .. it  when .. this  x0 #  { "
0.064  #consent #office  #others  #telling reset  0 .. the  ^ open  a .. com  debug  decode  prod  setup  this ticket  unlock  you .. read  zusammenfassung
0.065  #before #secret  #discredit #you  #give #telling prompt  #no #thing  #personal  > you  ^ for  answer  client =  ia  ia :  in .. by  o  open  this .. to  tmp  x0 |  有
0.066  #  #address #secret  #before #model  #divert #model  #secret #use  #thing #you  #use #you  x0 x
0.067  #before #say  #please #whole  #self #telling role  #telling role #you  about it  and post  e .. a  here  in your  r ?  request  the last
0.068  #say #then  #say #trigger  0 july  agent .. this  de  des  isn't  july  les  not .. any  start .. 0  txt
0.069  #before #office  #harm #secret  example /  machine  net /  on .. the  png  prior to  root .. x0  the .. about  this .. from  your .. to  в
0.07  #telling role  #user  and disable  been  great  lumenwork  offer 0  style .. 0  trust  word
0.071  #ask #their  #every #identifier  #excuse #give  #office #trigger  in the  ist  it is  meet  repeat the  the user
0.072  #address #take  a comment  end of  her  in .. next  now  with the  x  | x0
0.073  #give #talk  #no #telling unasked  ' :  0 is  about  and run  auth token  partner  the .. be  to .. x0  x0 .. q
0.074  #address #every  #duty #office  #office #telling role  #telling prior #user  all file  aus  aus dem  facturo  post  à
0.075  #model #please  #param #quoted  discount  login .. password
0.076  #duty #harm  #duty #use  #office #telling title  document  gur  naq  phone
0.077  #address #user  #office #telling prior  #please #telling reset  drop  evil example  last  name "  total 0  для  об  об этом  этом
0.078  #telling file #thing  #trigger #user  0 '  : mon  lift
0.079  ! x0  #consent #excuse  #every #thing  b  llm  move .. to  portal  prior  remark  на
0.08  #model #telling quiet  $ x0  [ /  and .. with  et .. la  key :  that the  to .. note
0.081  ` curl  et  yes
0.082  #address  #harm #telling prior  #model #obey  ^ notice  tool
0.083  " in  ] :  customer .. thank  has  history  holiday  hour  ines  open .. 0  reveal the  you were  | system
0.084  #every #take  #model #personal  #telling models #telling prior  #telling quiet  ' '  http .. example  my  ok  proce
0.085  #every #telling agreed  ^ customer  consent  e .. e  offer  receiv  reveal .. prompt  to continue  x0 .. to
0.086  " ok  #address #talk  #say #use  #telling prior #telling role  have  mon  out
0.087  #address #quoted  #duty #self  #excuse #take  #harm #no  #telling rules #whole  der  example .. png  first  png ?  private key  release 0  the .. that  this .. as
0.088  #consent #open  #quoted #trigger  #self #telling ignore  : ne  ^ 0  guest  lumenwork /  review
0.089  #identifier #then  #then #thing  automat  file .. public  the .. are  well
0.09  #no #talk  0 .. out  ^ message  by .. the  conversation  dear .. please  statu .. x0
0.091  #duty #model  and .. x0  mon .. 0  step  term
0.092  it .. on  maintainer  the follow  и
0.093  #model #then  and .. out  attach  r .. t
0.094  * /  ^ before  agenda  lo  t .. c  x0
0.095  #give #office  #office #quoted  ^ <  the .. and  x0 and
0.096  #give #secret  #model #telling file  x0 .. start
0.097  #address #give  #every #say  #personal #take  #please #telling models  error 0  list
0.098  #form #model  #model #take  tuesday
0.099  the .. as
0.1  #consent #every  #telling ignore #telling prior  #telling prompt #you  0 "  0 .. request  time  wir  zugang
0.101  " name  #identifier #model  #self #whole
0.102  #model #silent  begin .. key  id rsa  the .. password  then  x0 $
0.103  #no #open
0.104  #others #telling prior  #telling models #trigger  of the
0.105  #address #personal  net  ok "  t .. t
0.107  #model #secret
0.108  " and  du  move  please .. our  por
0.109  #identifier #office  #telling ignore #user  a .. de  base  public  requir
0.11  $  confirm  notice  so
0.111  ^ [  comment  de .. a  hinwei für  it  of
0.112  #office #you  desc  role .. admin
0.113  #user #you  acme  print  thank
0.114  wallet
0.115  #no #use  admin
0.116  due  finish  grant  q  que
0.117  #telling rules  #telling title  ^ {  example  io  the .. 0  to .. of
0.118  #telling marker  à .. de
0.119  #give #say  #identifier #thing  msg  root .. 0
0.121  / *  example net  reveal
0.122  #consent
0.123  #every #telling later  and .. the
0.125  #harm #user  #telling later  evil
0.126  #harm #use  ^ ignore
0.127  page 0
0.128  #address #thing  ^ hinwei  and  x0 =
0.129  and .. them
0.13  #every #user
0.132  the meet
0.133  ^ token  top
0.134  #no #silent  dns  highlight
0.136  #every #secret  feedback
0.137  ^ term  invoice
0.138  #consent #no  de .. la  term :
0.142  #model #telling models  ^ it
0.143  #address #model
0.144  #obey #then  hinwei
0.147  bank
0.149  begin .. private  entry
0.151  metadata
0.153  #thing #user  token .. x0
0.154  password .. x0  the .. well
0.157  ^ invoice
0.158  went
0.159  the .. tool
0.161  body  pdf
0.162  e .. o  o .. e  root
0.163  die .. der  this
0.165  price
0.18  #telling models
0.182  continue
0.2  : x0
0.214  #telling prior #telling rules
0.238  #model
0.239  exe
0.263  x0 .. example
0.306  #telling ignore #telling rules
"""
